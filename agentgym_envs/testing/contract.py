"""Checks of what every environment returns and refuses: spaces, infos, ending, arguments, tasks."""

from __future__ import annotations

import copy
import json
import pickle
import warnings
from collections.abc import Container
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env

from agentgym_envs.core import INFO_TYPES
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidTask, UnknownName, Unsupported
from agentgym_envs.spaces import is_utf8
from agentgym_envs.tasks import SPLITS, Task
from agentgym_envs.testing.base import (
    JUNK,
    ConformanceError,
    MakeEnv,
    added_info_keys,
    bare,
    conformance_check,
    has,
    made,
    must_raise,
    play_all,
    require,
    require_equal,
    some_task_ids,
    write_scripts,
)

CAPABILITIES = {
    "clone": ("save_state", "clone"),
    "oracle": ("oracle",),
    "admissible": ("admissible",),
    "state_key": ("state_key",),
}
"""The methods behind each capability."""


@conformance_check
def check_gymnasium(make: MakeEnv) -> None:
    """Gymnasium's own `check_env` passes without a warning."""
    min_level = gymnasium.logger.min_level
    gymnasium.logger.min_level = gymnasium.logger.WARN
    try:
        with made(make) as env, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            is_wrapped = env.unwrapped is not env
            # A wrapper that renders by itself does so in one mode, whatever mode is asked for.
            check_env(env, skip_render_check=env.render_mode != bare(env).render_mode)
    finally:
        gymnasium.logger.min_level = min_level
    messages = [str(warning.message) for warning in caught]
    if is_wrapped:
        messages = [text for text in messages if "different from the unwrapped" not in text]
    require(not messages, f"It warns: {messages}")


@conformance_check
def check_info(make: MakeEnv) -> None:
    """Every `info` has the same keys, with the types of the contract."""
    with made(make) as env:
        extras: dict[str, type] = {"admissible": list, "state_key": str}
        known = {key: kind for key, kind in extras.items() if has(env, key)}
        known |= bare(env).extra_info_keys
        always = dict(INFO_TYPES) | added_info_keys(env)
    for requested in ((), tuple(known)):
        expected = always | {key: known[key] for key in requested}
        for transcript in play_all(
            lambda keys=requested: make(info_keys=keys), write_scripts(make)
        ):
            for turn, (*_, info) in enumerate(transcript):
                types = {key: type(value) for key, value in info.items()}
                require_equal(types, expected, f"info of turn {turn} with info_keys={requested}")
                _check_info_values(info, turn, transcript)


def _check_info_values(info: dict[str, Any], turn: int, transcript: list[list[Any]]) -> None:
    require_equal(info["turn"], turn, "info['turn']")
    previous = transcript[turn - 1][-1]["format_errors"] if turn else 0
    allowed = [previous] if info["action_valid"] else [previous, previous + 1]
    require(
        info["format_errors"] in allowed,
        f"info['format_errors'] of turn {turn} is {info['format_errors']} after {previous}.",
    )
    require_equal(info["task_id"], transcript[0][1]["task_id"], "info['task_id']")
    require(0.0 <= info["score"] <= 1.0, f"info['score'] is {info['score']}, not in 0..1.")
    reason = EndReason(info["end_reason"])
    require_equal(info["success"], reason is EndReason.SUCCESS, "info['success'] at its end reason")
    if info["success"]:
        require_equal(info["score"], 1.0, "the score of a success")
    ended = {EndReason.SUCCESS: (True, False), EndReason.FAILURE: (True, False)}
    ended |= dict.fromkeys((EndReason.HORIZON, EndReason.BUDGET, EndReason.STOPPED), (False, True))
    ended[EndReason.RUNNING] = (False, False)
    if turn:
        flags = tuple(transcript[turn][2:4])
        require_equal(flags, ended.get(reason), f"(terminated, truncated) at {reason!r}")


@conformance_check
def check_observations(make: MakeEnv) -> None:
    """Every observation is in its space and can be encoded; the first one holds the goal."""
    scripts = write_scripts(make)
    with made(make) as env:
        for transcript in play_all(make, scripts):
            for observation, *_ in transcript:
                require(type(observation) is str, f"An observation is a {type(observation)}.")
                require(observation in env.observation_space, f"Not in space: {observation[:80]!r}")
        for task_id in some_task_ids(env, 5):
            observation, _ = env.reset(options={"task": task_id})
            require(
                bare(env).goal in observation,
                f"Task {task_id}: the goal {bare(env).goal!r} is not in {observation!r}.",
            )
        require(is_utf8(env.instructions), "The instructions cannot be encoded as UTF-8.")
        require(env.instructions.strip(), "The instructions are empty.")


@conformance_check
def check_fresh_objects(make: MakeEnv) -> None:
    """What is returned belongs to the caller: changing it changes nothing."""
    scripts = write_scripts(make)
    with made(make) as env:
        keys = tuple(key for key in ("admissible", "state_key") if has(env, key))
        keys += tuple(bare(env).extra_info_keys)
    expected = play_all(lambda: make(info_keys=keys), scripts)
    with made(make, info_keys=keys) as env:
        for script, transcript in zip(scripts, expected, strict=True):
            options = {"task": script.task_id, "horizon": script.horizon}
            entry: list[Any] = list(env.reset(seed=script.seed, options=options))
            for reply, following in zip((*script.replies, JUNK), transcript, strict=False):
                require_equal(entry, following, f"{script.task_id}, after an info was changed")
                for value in entry[-1].values():
                    if isinstance(value, (list, dict)):
                        value.clear()
                entry[-1].clear()
                if len(entry) > 2 and (entry[2] or entry[3]):
                    break
                entry = list(env.step(reply))
            require_equal(
                options,
                {"task": script.task_id, "horizon": script.horizon},
                "the options given to reset",
            )


@conformance_check
def check_horizon(make: MakeEnv) -> None:
    """The horizon truncates exactly, and every reply costs a turn."""
    for horizon in (1, 3):
        with made(make) as env, made(make, horizon=horizon) as fixed:
            env.reset(options={"horizon": horizon})
            fixed.reset()
            for subject in (env, fixed):
                require_equal(subject.horizon, horizon, "env.horizon")
                entries = [subject.step(JUNK) for _ in range(horizon)]
                flags = [entry[2:4] for entry in entries]
                require_equal(flags, [(False, False)] * (horizon - 1) + [(False, True)], "the ends")
                require_equal(entries[-1][4]["end_reason"], "horizon", "the end reason")
    with made(make, horizon=3) as env:
        env.reset(options={"horizon": 5})
        require_equal(env.horizon, 5, "env.horizon with options over the constructor")
        env.reset(options={"max_horizon": 2})
        require_equal(env.horizon, 2, "env.horizon under a limit")


@conformance_check
def check_order(make: MakeEnv) -> None:
    """Nothing is played before `reset` or after the end; a reply is a `str`."""
    with made(make) as env:
        with must_raise(gymnasium.error.ResetNeeded, "step() before reset()"):
            env.step(JUNK)
        env.reset(options={"horizon": 1})
        for action in (None, 3, b"bytes", ["list"]):
            with must_raise(TypeError, f"step({action!r})"):
                env.step(action)  # type: ignore[arg-type]
        env.step(JUNK)
        for _ in range(2):
            with must_raise(gymnasium.error.ResetNeeded, "step() after the end"):
                env.step(JUNK)
        env.reset()
        env.step(JUNK)


@conformance_check
def check_reset_errors(make: MakeEnv) -> None:
    """A reset that cannot be is refused with a sentence, and leaves no half-built episode."""
    with made(make) as env:
        task_id = env.tasks[0].id
        env.reset(options={"task": task_id})
        wrong = task_id[:-1] + ("x" if task_id[-1] != "x" else "y")
        try:
            env.reset(options={"task": wrong})
        except UnknownName as error:
            near = [name for name in str(error).split("'") if name and _holds(env.tasks, name)]
            require(near, f"The error for the unknown task {wrong!r} suggests no task: {error}")
        else:
            require(False, f"reset() took the unknown task {wrong!r}.")
        with must_raise(gymnasium.error.ResetNeeded, "step() after a reset that failed"):
            env.step(JUNK)
        stranger = Task("no such family", "x", "any", "goal", "category", None, 1)
        refusals: list[tuple[dict[Any, Any], type[Exception]]] = [
            ({"task": 1.5}, TypeError),
            ({"task": stranger}, InvalidTask),
            ({"horizon": 0}, ValueError),
            ({"horizon": "ten"}, ValueError),
            ({"tsak": task_id}, UnknownName),
        ]
        if bare(env).compat is None:  # a compat mode may number tasks as the original does
            refusals.append(({"task": len(env.tasks) + 10**9}, InvalidTask))
        for options, kind in refusals:
            with must_raise(kind, f"reset(options={options!r:.80})"):
                env.reset(options=options)
        env.reset(options={"task": task_id})


@conformance_check
def check_arguments(make: MakeEnv) -> None:
    """Arguments are checked when the environment is made; unknown names are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # gymnasium.make warns of a render mode, and goes on
        for name in ("split", "action_format", "reward", "render_mode", "compat"):
            wrong = {name: "no such name"}
            with must_raise(UnknownName, f"{name}='no such name'"), made(make, **wrong):
                pass
    with must_raise(UnknownName, "an unknown info key"), made(make, info_keys=("no such key",)):
        pass
    with must_raise(ValueError, "horizon=0"), made(make, horizon=0):
        pass


@conformance_check
def check_capabilities(make: MakeEnv) -> None:
    """What a family does not declare raises `Unsupported`."""
    with made(make) as env:
        env.reset()
        declared = bare(env).capabilities
        require(declared <= set(CAPABILITIES), f"Unknown capabilities in {sorted(declared)}.")
        for capability, methods in CAPABILITIES.items():
            for method in methods if capability not in declared else ():
                with must_raise(Unsupported, f"{method}() without {capability!r}"):
                    getattr(env, method)()
        if "clone" not in declared:
            with must_raise(Unsupported, "load_state() without 'clone'"):
                env.load_state(b"{}")
    for key in sorted({"admissible", "state_key"} - declared):
        with must_raise(Unsupported, f"info_keys=({key!r},)"), made(make, info_keys=(key,)):
            pass


@conformance_check
def check_tasks(make: MakeEnv) -> None:
    """Tasks have distinct ids, stand in one split only, and survive JSON and pickling."""
    heads: dict[str, tuple[str, ...]] = {}
    for split in SPLITS:
        with made(make, split=split) as env:
            tasks = env.tasks
            require(len(tasks), f"The split {split!r} is empty.")
            heads[split] = tasks.head(200).ids
            require_equal(len(set(heads[split])), len(heads[split]), f"distinct ids in {split!r}")
            for other in heads:
                shared = [task_id for task_id in heads[other] if _holds(tasks, task_id)]
                require(other == split or not shared, f"In {other!r} and {split!r}: {shared[:3]}")
            for index in (0, len(tasks) - 1):
                task = tasks[index]
                require_equal(task.family, bare(env).family, f"family of {task.id}")
                require_equal(Task.from_json(json.loads(json.dumps(task.to_json()))), task, "JSON")
                require_equal(pickle.loads(pickle.dumps(task)), task, "pickling")
                by_id = env.reset(seed=0, options={"task": task.id})
                require_equal(env.task, task, "env.task")
                if bare(env).compat is None:  # a compat mode may number tasks as the original does
                    by_index = env.reset(seed=0, options={"task": index})
                    require_equal(by_index, by_id, f"task {index}")


def _holds(tasks: Container[object], task_id: str) -> bool:
    return task_id in tasks


@conformance_check
def check_spec(make: MakeEnv) -> None:
    """The spec survives JSON and makes the same environment; spaces survive pickling."""
    scripts = write_scripts(make, num_tasks=1)
    with made(make) as env:
        spec = env.spec
        if spec is None:
            raise ConformanceError("There is no spec; make it with gymnasium.make.")
        for space in (env.observation_space, env.action_space):
            require_equal(pickle.loads(pickle.dumps(space)), space, "pickling a space")
            require_equal(copy.deepcopy(space), space, "copying a space")
    again = EnvSpec.from_json(spec.to_json())
    require_equal(again, spec, "the spec after JSON")
    require_equal(
        play_all(lambda: gymnasium.make(again), scripts), play_all(make, scripts), "transcripts"
    )


@conformance_check
def check_render(make: MakeEnv) -> None:
    """Every declared mode renders, and rendering changes nothing."""
    scripts = write_scripts(make, num_tasks=1, max_turns=4)
    expected = play_all(make, scripts)
    with made(make) as env:
        modes = bare(env).metadata["render_modes"]
        require("ansi" in modes, f"'ansi' is not in the render modes {modes}.")
        own_mode = env.render_mode  # of a wrapper that renders whatever mode is asked for
        env.reset()
        if own_mode is None:
            with must_raise(gymnasium.error.Error, "render() without a mode"):
                env.render()
    for mode in modes:
        with made(make, render_mode=mode) as env:
            for script, transcript in zip(scripts, expected, strict=True):
                options = {"task": script.task_id, "horizon": script.horizon}
                found: list[Any] = [list(env.reset(seed=script.seed, options=options))]
                for reply in script.replies[: len(transcript) - 1]:
                    _check_frame(own_mode or mode, env.render())
                    found.append(list(env.step(reply)))
                _check_frame(own_mode or mode, env.render())
                require_equal(found, transcript, f"the transcript while rendering {mode!r}")


def _check_frame(mode: str, frame: Any) -> None:
    if mode == "ansi":
        require(type(frame) is str and frame, f"An ansi frame is a text, got {frame!r:.80}.")
    if mode == "rgb_array":
        require(
            isinstance(frame, np.ndarray) and frame.dtype == np.uint8 and frame.shape[2:] == (3,),
            f"A picture is uint8 (height, width, 3), got {frame!r:.80}.",
        )
