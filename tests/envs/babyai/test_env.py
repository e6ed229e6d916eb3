import gzip
import json
import pickle
import subprocess
import sys
import warnings
from collections import Counter

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import agentgym_envs  # noqa: F401  (registers the ids)
from agentgym_envs.babyai import tasks
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.reward import time_discounted
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import EnvFault, InvalidState, InvalidTask, UnknownName
from agentgym_envs.manifests import Manifest, SplitSummary
from agentgym_envs.outcomes import RewardInput
from agentgym_envs.policies import RandomPolicy, run_episode
from agentgym_envs.tasks import SPLITS, Task

ID = "AgentGym/BabyAI-v0"
VISIBLE = "babyai/any/GoToRedBall/5"
"""A task whose red ball is in the first view."""


def make(**arguments):
    return gymnasium.make(ID, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"levels": "redball"},
        {"levels": "GoToLocal", "action_mode": "low", "obs_style": "compact"},
        {"levels": "redball", "render_mode": "ansi"},
        {"levels": "redball", "render_mode": "rgb_array", "action_format": "react"},
    ],
)
def test_gymnasiums_checker_has_nothing_to_say(arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(make(**arguments))


def test_the_first_observation_holds_the_goal_verbatim():
    world = BabyAIWorld()
    for style in ("text", "compact"):
        env = make(obs_style=style)
        for level in ("SynthSeq", "GoToSeqS5R2", "OpenRedBlueDoorsDebug"):
            for seed in range(4):
                world.reset(level, seed)
                observation, _ = env.reset(options={"task": f"babyai/any/{level}/{seed}"})
                assert world.mission in observation
                assert env.task.goal == world.mission


def test_an_episode_is_won_once_with_reward_one():
    env = make(levels="redball", info_keys=("mission", "level"))
    observation, info = env.reset(options={"task": VISIBLE})
    assert observation.startswith("Your goal: go to the red ball\nYou see red ball 1, ")
    assert (info["mission"], info["level"]) == ("go to the red ball", "GoToRedBall")
    _, reward, terminated, truncated, info = env.step("turn left")
    assert (reward, terminated, truncated, info["success"]) == (0.0, False, False, False)
    observation, reward, terminated, truncated, info = env.step("go to red ball 1")
    assert (reward, terminated, truncated, info["score"]) == (1.0, True, False, 1.0)
    assert info["success"] is True
    assert info["end_reason"] == "success"
    assert observation.startswith("You have reached your goal. You see red ball 1, 1 step ahead")
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("go to red ball 1")


def test_refusals_cost_a_turn_and_nothing_else():
    env = make(levels="redball", info_keys=("state_key",))
    _, before = env.reset(options={"task": VISIBLE})
    for number, reply in enumerate(("banana", "", "go to blue door 4", "drop", "\x00\ud800"), 1):
        observation, reward, terminated, _, info = env.step(reply)
        assert (reward, terminated, info["action_valid"]) == (0.0, False, False)
        assert info["turn"] == number
        assert info["state_key"] == before["state_key"]
        assert observation
    assert env.world.num_steps == 0


def test_refusals_in_compact_style_are_one_sentence():
    env = make(levels="redball", obs_style="compact")
    observation, _ = env.reset(options={"task": VISIBLE})
    assert observation == "goal : go to the red ball . red ball 1 f1 l3 . wall f2"
    assert env.step("go to blue key 1")[0] == "There is no blue key 1 in view."


def test_rewards_repeat_nothing_and_may_be_discounted_by_turns():
    env = make(reward="time_discounted")
    env.reset(options={"task": VISIBLE, "horizon": 10})
    assert env.step("banana")[1] == 0.0
    assert env.step("go to red ball 1")[1] == pytest.approx(1 - 0.9 * 2 / 10)
    for end_reason in (EndReason.RUNNING, EndReason.FAILURE):
        assert time_discounted(RewardInput(0, 0, end_reason, 3, 10, True)) == 0.0


def test_a_strict_mission_that_fails_ends_the_episode_as_failure():
    env = make(info_keys=("admissible",))
    ends = Counter()
    for seed in range(12):
        _, info = env.reset(options={"task": f"babyai/any/PickupDistDebug/{seed}"})
        for command in info["admissible"]:
            if command.startswith("pick up"):
                _, reward, terminated, _, info = env.step(command)
                assert terminated
                assert info["success"] == (reward == 1.0)
                ends[info["end_reason"]] += 1
                break
    assert ends["failure"] > 2
    assert set(ends) <= {"failure", "success"}


def test_the_horizon_truncates_and_minigrids_limit_does_not():
    env = make(levels="redball")
    env.reset(options={"task": "babyai/any/GoToObjS4/0", "horizon": 40})
    for turn in range(1, 41):
        _, _, terminated, truncated, info = env.step("turn left" if turn % 2 else "turn right")
        if terminated:
            break
        assert truncated == (turn == 40)
    assert info["end_reason"] == ("success" if terminated else "horizon")


def test_what_a_verb_reports_comes_before_the_scene():
    env = make(levels="redball")
    env.reset(options={"task": VISIBLE})
    assert env._dialect.observe(env.world, "You stop. Why not.").startswith(
        "You stop. Why not. You see red ball 1"
    )
    compact = make(obs_style="compact")
    compact.reset(options={"task": VISIBLE})
    assert compact._dialect.observe(compact.world, "You stop. Why not.").startswith(
        "You stop. red ball 1 f1"
    )


# ------------------------------------------------------------------------------------- tasks


def test_splits_share_no_layout_and_have_the_shares_they_should():
    layouts = {split: set() for split in SPLITS}
    world = BabyAIWorld()
    for seed in range(600):
        world.reset("GoToLocal", seed)
        layouts[tasks.split_of(world.layout)].add(world.layout)
    sizes = {split: len(found) for split, found in layouts.items()}
    assert 440 < sizes["train"] < 520
    assert 25 < sizes["dev"] < 75
    assert 45 < sizes["test"] < 100
    assert tasks.split_of("00000013" + "0" * 56) == "train"
    assert tasks.split_of("00000014" + "0" * 56) == "dev"
    assert tasks.split_of("00000018" + "0" * 56) == "test"


def test_task_sets_take_the_levels_in_turn_and_find_tasks_by_id():
    for split in SPLITS:
        found = make(levels="redball", split=split).tasks
        assert found.head(6).ids == tuple(task.id for task in (found[i] for i in range(6)))
        assert [task.category for task in found.head(6)] == [
            "GoToRedBallGrey",
            "GoToRedBall",
            "GoToRedBallNoDists",
        ] * 2
        task = found[len(found) // 2]
        assert found[task.id] == task
        assert task.id == f"babyai/{split}/{task.category}/{task.seed}"
        assert task.horizon == 2 * task.difficulty + 5
        assert sum(found.categories().values()) == len(found) == len(set(found.ids))


def test_certified_tasks_build_what_their_rows_say():
    env = make(levels="redball", split="test")
    for task in env.tasks.head(9):
        observation, info = env.reset(options={"task": task})
        assert info["task_id"] == task.id
        assert env.horizon == task.horizon
        assert task.goal in observation
        assert env.world.layout.startswith(task.payload["digest"])
        assert tasks.split_of(env.world.layout) == "test"


def test_certified_ids_of_other_splits_and_levels_are_known():
    env = make(levels="GoToLocal", split="train")
    task = make(levels="redball", split="dev").tasks[0]
    env.reset(options={"task": task.id})
    assert env.task == task
    narrowed = make(tasks=[task.id, "babyai/any/BossLevel/3"])
    assert narrowed.tasks.ids == (task.id, "babyai/any/BossLevel/3")
    assert narrowed.tasks[1].goal.startswith("put the purple box next to")


def test_narrowing_tasks_does_not_disturb_a_running_episode():
    env = make(tasks=["babyai/any/GoToLocal/1"])
    env.reset(options={"task": VISIBLE})
    env.step("turn left")
    key = env.state_key()
    assert len(env.tasks) == 1
    assert env.state_key() == key


def test_low_level_horizons_are_longer():
    high, low = (
        make(levels="redball", action_mode=mode).tasks[0].horizon for mode in ("high", "low")
    )
    assert low > 2 * high
    env = make(action_mode="low")
    env.reset(options={"task": VISIBLE})
    assert env.horizon == env.world.max_steps == 64


def test_another_world_than_the_manifest_expects_is_a_fault():
    env = make(levels="redball")
    task = env.tasks[0]
    changed = Task.from_json(task.to_json() | {"payload": dict(task.payload, digest="0badc0de")})
    with pytest.raises(EnvFault, match=r"builds another world than the manifest expects.*0badc0de"):
        env.reset(options={"task": changed})
    env.reset(options={"task": task})


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("babyai/train/GoToRedBal/1", "unknown level 'GoToRedBal'; did you mean 'GoToRedBall'"),
        ("babyai/trian/GoToRedBall/1", "unknown split 'trian'; did you mean 'train'"),
        ("GoToRedBall/1", "unknown task 'GoToRedBall/1'; did you mean 'babyai/"),
        ("babyai/any/GoToRedBall/007", "unknown task"),
        ("babyai/any/GoToRedBall/-1", "unknown task"),
        ("babyai/test/GoToRedBall/99999999", "unknown task .* did you mean 'babyai/test/GoToRed"),
    ],
)
def test_unknown_tasks_are_answered_with_near_names(task, message):
    with pytest.raises(UnknownName, match=message):
        make(levels="redball").reset(options={"task": task})


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"levels": "GoToRedBal"}, UnknownName, "did you mean 'GoToRedBall'"),
        ({"levels": []}, ValueError, "levels is empty"),
        ({"levels": None}, TypeError, "levels must be a list of texts, got None"),
        ({"levels": {"GoTo", "Open"}}, TypeError, "levels must be a list of texts, got {"),
        ({"levels": [5]}, TypeError, "levels must be a list of texts, but it holds 5"),
        ({"action_mode": ["high"]}, UnknownName, "unknown action_mode"),
        ({"action_mode": "hihg"}, UnknownName, "unknown action_mode 'hihg'; did you mean 'high'"),
        ({"obs_style": "txt"}, UnknownName, "unknown obs_style 'txt'; did you mean 'text'"),
        ({"compat": "agentgym", "obs_style": "compact"}, ValueError, "its own actions and texts"),
        ({"reward": "shaped"}, UnknownName, "unknown reward 'shaped'"),
    ],
)
def test_wrong_arguments_are_refused_when_the_environment_is_made(arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


def test_levels_without_certified_tasks_say_what_to_do(monkeypatch):
    nothing = {split: SplitSummary(0, "", {}) for split in SPLITS}
    monkeypatch.setattr(tasks, "manifest", lambda: Manifest("babyai", "1", nothing))
    env = make(levels="GoToObjMazeS4R2")
    with pytest.raises(InvalidTask, match="'babyai/any/GoToObjMazeS4R2/0'"):
        env.reset()
    env.reset(options={"task": "babyai/any/GoToObjMazeS4R2/0"})


def _broken_stream(data):
    return data[:12] + bytes([data[12] ^ 255]) + data[13:]


def _changed_rows(change):
    return lambda data: gzip.compress(change(gzip.decompress(data).decode()).encode())


@pytest.mark.parametrize(
    ("tamper", "error", "message"),
    [
        (lambda data: data[: len(data) // 2], InvalidTask, "cannot read the tasks of GoToRedBall"),
        (_broken_stream, InvalidTask, "cannot read the tasks of GoToRedBall"),
        (_changed_rows(lambda text: text.partition("\n")[2]), InvalidTask, "counts 1000 tasks"),
        (_changed_rows(lambda text: text.replace(" ", " x", 1)), InvalidTask, "'train x0 "),
        (_changed_rows(lambda text: text.replace("ball", "box")), EnvFault, "instead of .* box"),
    ],
)
def test_data_files_that_were_tampered_with_are_found_out(
    tamper, error, message, monkeypatch, tmp_path
):
    good = tasks._data("GoToRedBall.txt.gz").read_bytes()
    (tmp_path / "GoToRedBall.txt.gz").write_bytes(tamper(good))
    tasks.manifest()
    monkeypatch.setattr(tasks, "_data", lambda name: tmp_path / name)
    monkeypatch.setattr(tasks, "_rows", tasks._rows.__wrapped__)  # leaves the cache alone
    with pytest.raises(error, match=message):
        make(levels="GoToRedBall").reset(options={"task": 0})


def test_a_task_without_a_level_is_refused():
    task = Task("babyai", "babyai/any/x/1", "any", "go", "x", 1, 10)
    with pytest.raises(InvalidTask, match="payload with a level"):
        make().reset(options={"task": task})


# ------------------------------------------------------------------------- states, rendering


def play(env, turns, seed):
    """Random commands, some refused; the transcript."""
    rng = np.random.default_rng(seed)
    transcript = []
    for _ in range(turns):
        commands = [*env.admissible(), "go to grey door 9"]
        step = env.step(commands[int(rng.integers(len(commands)))])
        transcript.append(step)
        if step[2] or step[3]:
            break
    return transcript


@pytest.mark.parametrize("level", ["BossLevel", "PutNextS7N4Carrying", "KeyInBox", "GoToSeqS5R2"])
def test_clones_and_loaded_states_continue_identically(level):
    keys = ("admissible", "state_key")
    env, other = make(info_keys=keys), make(info_keys=keys)
    for seed in range(3):
        env.reset(seed=seed, options={"task": f"babyai/any/{level}/{seed}", "horizon": 60})
        play(env, 8, seed)
        if env.admissible() == []:
            continue
        state, twin = env.save_state(), env.clone()
        other.load_state(state)
        future = play(env, 25, seed + 50)
        assert play(twin, 25, seed + 50) == future
        assert play(other, 25, seed + 50) == future
        env.load_state(state)
        assert play(env, 25, seed + 50) == future


def test_a_broken_state_is_refused_and_changes_nothing():
    env = make(levels="redball", info_keys=("state_key",))
    env.reset(options={"task": VISIBLE})
    env.step("turn left")
    key = env.state_key()
    state = json.loads(env.save_state())
    for broken in (
        {"level": "GoToRedBall"},
        state["world"] | {"thing_at": [[3, 99]]},
        state["world"] | {"seed": 6},
        state["world"] | {"seed": -1},
        None,
    ):
        with pytest.raises(InvalidState):
            env.load_state(json.dumps(state | {"world": broken}).encode())
        assert env.state_key() == key
        assert env.admissible()


def test_transcripts_do_not_depend_on_process_and_hash_seed():
    code = (
        "import agentgym_envs, gymnasium, hashlib\n"
        "from agentgym_envs.policies import RandomPolicy, run_episode\n"
        "env = gymnasium.make('AgentGym/BabyAI-v0', info_keys=('admissible', 'state_key'))\n"
        "text = ''\n"
        "for level in ('BossLevel', 'GoToObjDoor', 'Unlock'):\n"
        "    task = f'babyai/any/{level}/4'\n"
        "    episode = run_episode(env, RandomPolicy(1), task=task, horizon=30)\n"
        "    text += repr(episode.to_json())\n"
        "print(hashlib.sha256(text.encode()).hexdigest())\n"
    )
    digests = set()
    for hash_seed in ("0", "1", "12345"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            timeout=120,
            env={"PYTHONHASHSEED": hash_seed},
        )
        assert done.stderr == ""
        digests.add(done.stdout)
    assert len(digests) == 1


def test_random_play_in_every_style_never_raises():
    for arguments in (
        {"action_mode": "high"},
        {"action_mode": "low", "obs_style": "compact"},
    ):
        env = make(levels="redball", info_keys=("admissible",), **arguments)
        for index in range(6):
            episode = run_episode(env, RandomPolicy(index), task=index)
            assert all(turn.action_valid for turn in episode.turns)
            assert episode.return_ in (0.0, 1.0)


def test_ansi_shows_the_whole_grid_and_marks_the_view():
    env = make(render_mode="ansi")
    env.reset(options={"task": VISIBLE})
    picture = env.render()
    lines = picture.splitlines()
    assert len(lines) == 8 + 3
    assert lines[0] == "## ## ## ## ## ## ## ##" or "##." in lines[0]
    assert lines[8] == "Goal: go to the red ball"
    assert lines[9] == "Carried: nothing"
    assert sum(row.count(arrow) for row in lines[:8] for arrow in ">v<^") == 1
    visible = sum(row.count(".") for row in lines[:8])
    assert visible == sum(code != 255 for code in env.world.view().cells)
    assert "Or." in picture


def test_rgb_array_is_minigrids_picture():
    env = make(render_mode="rgb_array")
    env.reset(options={"task": VISIBLE})
    frame = env.render()
    assert (frame.shape, frame.dtype) == ((256, 256, 3), np.uint8)
    assert len(np.unique(frame.reshape(-1, 3), axis=0)) > 3


def test_instructions_hold_rules_verbs_and_notation():
    text, compact = make().instructions, make(obs_style="compact").instructions
    low = make(action_mode="low").instructions
    for instructions in (text, compact):
        assert "seven by seven" in instructions
        assert "- go to <target>: Walk to something in view" in instructions
        assert "## " not in instructions
    assert "f3 is three steps ahead" in compact
    assert "f3" not in text
    assert "go to <target>" not in low
    assert "- pick up: Pick up the ball" in low


def test_the_class_docstring_is_the_page_of_the_docs():
    for heading in (
        "Description", "Action Space", "Observation Space", "Starting State", "Rewards",
        "Episode End", "Information", "Arguments", "Version History",
    ):  # fmt: skip
        assert f"## {heading}" in BabyAIEnv.__doc__


def test_the_spec_round_trips_and_tasks_can_be_pickled():
    env = make(levels=["redball", "Open"], obs_style="compact")
    again = gymnasium.make(gymnasium.envs.registration.EnvSpec.from_json(env.spec.to_json()))
    assert again.tasks.digest() == env.tasks.digest()
    assert pickle.loads(pickle.dumps(env.tasks[0])) == env.tasks[0]
