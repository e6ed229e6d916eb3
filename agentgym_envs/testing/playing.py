"""Checks of playing well: oracles, admissible commands, rewards."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agentgym_envs.core import TextEnv
from agentgym_envs.policies import run_episode
from agentgym_envs.testing.base import (
    MakeEnv,
    Script,
    bare,
    begin,
    conformance_check,
    has,
    made,
    play_all,
    require,
    require_equal,
    some_task_ids,
    turns,
    write_scripts,
)

MAX_STATES = 4
MAX_COMMANDS = 40


@conformance_check
def check_oracle(make: MakeEnv) -> None:
    """The oracle solves tasks of every split within their horizons."""
    for split in ("train", "dev", "test"):
        with made(make, split=split) as env:
            if not has(env, "oracle"):
                return
            for task_id in some_task_ids(env, 3):
                episode = run_episode(env, task=task_id)
                played = f"{task_id}: {[turn.reply for turn in episode.turns]}"
                require(episode.success, f"It ends with '{episode.end_reason}' on {played}.")
                require_equal(episode.score, 1.0, f"the score on {played}")
                invalid = [turn.reply for turn in episode.turns if not turn.action_valid]
                require(not invalid, f"Refused on {task_id}: {invalid}.")


@conformance_check
def check_admissible(make: MakeEnv) -> None:
    """Every admissible command is carried out, and lists are in a fixed order."""
    scripts = write_scripts(make, num_tasks=2)
    with made(make) as env, made(make) as other:
        if not has(env, "admissible"):
            return
        for script in scripts:
            _check_commands_along(env, other, script)
        env.reset(options={"horizon": 1})
        env.step("")
        require_equal(env.admissible(), [], "what is admissible after the end")


def _check_commands_along(env: TextEnv, other: TextEnv, script: Script) -> None:
    for num_turns in range(min(MAX_STATES, len(script.replies))):
        history = script.replies[:num_turns]
        _replay(env, script, history)
        _replay(other, script, history)
        commands = env.admissible()
        require_equal(other.admissible(), commands, "admissible() in another instance")
        require_equal(len(set(commands)), len(commands), f"distinct commands in {commands}")
        for command in commands[:MAX_COMMANDS]:
            _replay(other, script, history)
            observation, *_, info = other.step(other.render_command(command))
            require(
                info["action_valid"],
                f"{script.task_id}, turn {num_turns}: {command!r} is refused: {observation!r}",
            )


def _replay(env: TextEnv, script: Script, replies: Sequence[str]) -> None:
    begin(env, script)
    list(turns(env, replies))


@conformance_check
def check_rewards(make: MakeEnv) -> None:
    """Rewards are finite floats, none for a refused reply, and add up to the final score."""
    with made(make) as env:
        rewards = tuple(bare(env).rewards)
    for name in rewards:
        scripts = write_scripts(make)
        for transcript in play_all(lambda name=name: make(reward=name), scripts):
            values = [entry[-1].get("env_reward", entry[1]) for entry in transcript[1:]]
            require(all(type(value) is float for value in values), f"{name!r} gives {values}.")
            require(all(map(math.isfinite, values)), f"{name!r} gives {values}.")
            if name != "default":
                continue
            played = zip(values, transcript[1:], strict=True)
            refused = [value for value, entry in played if not entry[-1]["action_valid"]]
            require(not any(refused), f"Refused replies get rewards {refused}.")
            score = transcript[-1][-1]["score"]
            require(
                math.isclose(sum(values), score, abs_tol=1e-9),
                f"The rewards {values} add up to {sum(values)}, but the score is {score}.",
            )
