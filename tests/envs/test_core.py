import functools

import gymnasium
import numpy as np
import pytest
from counting import BareEnv, CountingEnv, CoyEnv, FaultyEnv, PlainEnv

from agentgym_envs import core
from agentgym_envs.core import INFO_TYPES, MAX_OBSERVATION, MAX_REPLY, TextEnv
from agentgym_envs.errors import (
    EnvFault,
    InvalidTask,
    UnknownName,
    Unsupported,
)
from agentgym_envs.outcomes import Outcome
from agentgym_envs.tasks import ListSource, Task, TaskSet

NINE = "counting/train/9"


@pytest.fixture
def env() -> CountingEnv:
    env = CountingEnv()
    env.reset(options={"task": NINE})
    return env


def test_the_goal_is_that_of_the_task_unless_the_world_states_it(env):
    assert env.goal == "Make the counter show 9, then say done."
    coy = CoyEnv(render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        _ = coy.goal
    observation, _ = coy.reset(options={"task": NINE})
    assert (coy.task.goal, coy.goal) == ("number 9", "Count to 9.")
    assert observation.startswith(coy.goal)
    assert coy.render().startswith(coy.goal)


def test_an_episode_from_goal_to_success(env):
    observation, info = env.reset(options={"task": NINE})
    assert observation == "Make the counter show 9, then say done.\nThe counter shows 0."
    assert info == {
        "task_id": NINE,
        "turn": 0,
        "score": 0.0,
        "success": False,
        "action_valid": True,
        "format_errors": 0,
        "end_reason": "",
    }
    observation, reward, terminated, truncated, info = env.step("add 9")
    assert (observation, reward, terminated, truncated) == (
        "You add 9. The counter shows 9.",
        0.5,
        False,
        False,
    )
    observation, reward, terminated, truncated, info = env.step("done")
    assert (observation, reward, terminated, truncated) == (
        "You say that you are done. Right.",
        0.5,
        True,
        False,
    )
    assert info == {
        "task_id": NINE,
        "turn": 2,
        "score": 1.0,
        "success": True,
        "action_valid": True,
        "format_errors": 0,
        "end_reason": "success",
    }


def test_a_failure_terminates_without_success(env):
    *_, terminated, truncated, info = env.step("done")
    assert (terminated, truncated) == (True, False)
    assert (info["end_reason"], info["success"], info["score"]) == ("failure", False, 0.0)


def test_infos_have_frozen_keys_and_types(env):
    infos = [env.reset()[1], env.step("add 1")[4], env.step("what?")[4], env.step("done")[4]]
    for info in infos:
        assert {key: type(value) for key, value in info.items()} == dict(INFO_TYPES)


def test_a_refused_reply_costs_a_turn_and_changes_nothing_else(env):
    key = env.state_key()
    for turn, reply in enumerate(["", "fly", "add 10", "add 1\nadd 1", "\ud800"], start=1):
        observation, reward, terminated, truncated, info = env.step(reply)
        assert observation in env.observation_space
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert (info["turn"], info["action_valid"]) == (turn, False)
        assert env.state_key() == key


def test_replies_that_hold_no_command_in_the_format_are_counted(env):
    def counts(env, *replies):
        env.reset(options={"task": NINE})
        return [env.step(reply)[4]["format_errors"] for reply in replies]

    assert counts(env, "add 1", "", "fly", "add 1\nadd 1", "add 10") == [0, 1, 1, 2, 2]
    assert env.reset()[1]["format_errors"] == 0
    called = CountingEnv(action_format="json")
    replies = ['{"name": "fly"}', "add 1", '{"name": "add", "arguments": {"amount": 1}}', "{"]
    assert counts(called, *replies) == [0, 1, 1, 2]
    twin = called.clone()
    assert twin.step("")[4]["format_errors"] == called.step("")[4]["format_errors"] == 3


def test_a_reward_is_the_gain_in_score_and_may_be_lost_again(env):
    rewards = [env.step(reply)[1] for reply in ("add 9", "add 1", "what?", "take away 1", "done")]
    assert rewards == [0.5, -0.5, 0.0, 0.5, 0.5]


def test_rewards_are_chosen_by_name():
    env = CountingEnv(reward="double")
    env.reset(options={"task": NINE})
    assert env.step("add 9")[1] == 1.0
    with pytest.raises(UnknownName, match="unknown reward 'doubel'; did you mean 'double'"):
        CountingEnv(reward="doubel")


def test_the_horizon_truncates_exactly(env):
    assert env.horizon == 10
    flags = [env.step("what?")[2:4] for _ in range(10)]
    assert flags == [(False, False)] * 9 + [(False, True)]
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"the episode ended \(horizon\)"):
        env.step("add 1")


def test_success_in_the_last_turn_is_success(env):
    env.reset(options={"task": NINE, "horizon": 2})
    env.step("add 9")
    *_, terminated, truncated, info = env.step("done")
    assert (terminated, truncated, info["end_reason"]) == (True, False, "success")


def test_horizons_by_task_constructor_reset_and_limit():
    def horizon(options, **kwargs):
        env = CountingEnv(**kwargs)
        env.reset(options=options)
        return env.horizon

    assert horizon(None) == 10
    assert horizon(None, horizon=7) == 7
    assert horizon({"horizon": 5}, horizon=7) == 5
    assert horizon({"horizon": 50}) == 50
    assert horizon({"horizon": None, "task": None}, horizon=7) == 7
    assert horizon({"max_horizon": 3}) == 3
    assert horizon({"max_horizon": 30}) == 10
    assert horizon({"max_horizon": 3, "horizon": 5}, horizon=7) == 3


@pytest.mark.parametrize("horizon", [0, -1, 2.5, True, "ten"])
def test_an_impossible_horizon_is_refused(horizon):
    with pytest.raises(ValueError, match="at least 1; got"):
        CountingEnv(horizon=horizon)
    with pytest.raises(ValueError, match="at least 1; got"):
        CountingEnv().reset(options={"horizon": horizon})


def test_nothing_is_played_before_reset_or_after_the_end(env):
    with pytest.raises(gymnasium.error.ResetNeeded, match="call reset"):
        CountingEnv().step("add 1")
    with pytest.raises(gymnasium.error.ResetNeeded, match="there is no task yet"):
        _ = CountingEnv().task
    env.step("done")
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"ended \(failure\)"):
        env.step("add 1")


def test_an_action_that_is_no_text_is_the_callers_mistake(env):
    for action in (3, None, b"add 1", ["add 1"]):
        with pytest.raises(TypeError, match="an action is a str"):
            env.step(action)
    assert env.step("add 1")[4]["turn"] == 1


def test_a_task_is_named_by_id_index_or_itself(env):
    for task in (NINE, 2, np.int64(2), -1 + len(env.tasks), env.tasks[2]):
        assert env.reset(options={"task": task})[1]["task_id"] in {NINE, env.tasks[-1].id}
    own = Task("counting", "mine", "any", "Make it 1.", "small", None, 3, payload={"number": 1})
    assert env.reset(options={"task": own})[1]["task_id"] == "mine"
    assert env.horizon == 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"task": "counting/trian/9"}, UnknownName, "did you mean .*counting/train/9"),
        ({"task": 99}, InvalidTask, "task index 99 is out of range; there are 4"),
        ({"task": 1.5}, TypeError, "an id, an index or a Task; got float"),
        ({"task": True}, TypeError, "an id, an index or a Task; got bool"),
        (
            {"task": Task("other", "x", "any", "", "", None, 1)},
            InvalidTask,
            "task 'x' belongs to 'other', this is 'counting'",
        ),
        ({"tsak": NINE}, UnknownName, "unknown reset option 'tsak'; did you mean 'task'"),
        ({3: NINE}, UnknownName, "unknown reset option 3"),
    ],
)
def test_a_reset_that_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        CountingEnv().reset(options=options)


def test_a_failed_reset_leaves_no_half_built_episode(env):
    for options in ({"task": "nowhere"}, {"tsak": 3}, {"horizon": 0}):
        env.reset()
        with pytest.raises((UnknownName, ValueError)):
            env.reset(options=options)
        with pytest.raises(gymnasium.error.ResetNeeded):
            env.step("add 1")


def test_an_empty_task_set_has_nothing_to_draw():
    env = CountingEnv(tasks=TaskSet(ListSource([])))
    with pytest.raises(InvalidTask, match="the task set of counting/train is empty"):
        env.reset()


def test_splits_hold_different_tasks():
    ids = {split: CountingEnv(split=split).tasks.ids for split in ("train", "dev", "test")}
    assert ids["train"] == tuple(f"counting/train/{n}" for n in (3, 6, 9, 12))
    assert ids["dev"] == tuple(f"counting/dev/{n}" for n in (4, 7, 10))
    with pytest.raises(UnknownName, match="unknown split 'trian'"):
        CountingEnv(split="trian")


def test_tasks_are_narrowed_by_ids_file_or_set(tmp_path):
    assert CountingEnv(tasks=[NINE]).tasks.ids == (NINE,)
    (tmp_path / "ids").write_text(f"{NINE}\ncounting/train/3\n", encoding="utf-8")
    assert CountingEnv(tasks=str(tmp_path / "ids")).tasks.ids == (NINE, "counting/train/3")
    few = CountingEnv().tasks.head(2)
    assert CountingEnv(tasks=few).tasks is few
    with pytest.raises(UnknownName, match="counting/train/10"):
        _ = CountingEnv(tasks=["counting/train/10"]).tasks


def test_every_task_is_drawn_and_the_seed_decides_which():
    env = CountingEnv()
    drawn = [env.reset(seed=seed)[1]["task_id"] for seed in range(100)]
    assert set(drawn) == set(env.tasks.ids)
    assert [CountingEnv().reset(seed=seed)[1]["task_id"] for seed in range(100)] == drawn


def test_a_drawn_episode_can_be_played_again_from_its_task_and_seed():
    env = CountingEnv()
    for seed in range(20):
        _, info = env.reset(seed=seed)
        rolls = [env.step("roll")[0] for _ in range(3)]
        env.reset(seed=seed, options={"task": info["task_id"]})
        assert [env.step("roll")[0] for _ in range(3)] == rolls


def test_instructions_hold_rules_and_format(env):
    start = "You have a counter.\n\nCommands:\n- add <amount>: Add 1 to 9"
    assert env.instructions.startswith(start)
    assert env.instructions.endswith("for example:\nadd 3")
    assert "Thought:" in CountingEnv(action_format="react").instructions
    called = CountingEnv(action_format="code").instructions
    assert called.startswith("You have a counter.\n\nFunctions:\n- add(amount: int): Add 1 to 9")
    assert "<amount>" not in called


def test_instructions_can_stand_in_the_first_observation():
    env = CountingEnv(instructions_in_observation=True)
    observation, _ = env.reset(options={"task": NINE})
    assert observation == f"{env.instructions}\n\n{CountingEnv().reset(options={'task': NINE})[0]}"


def test_the_action_format_decides_how_replies_are_read():
    env = CountingEnv(action_format="react")
    env.reset(options={"task": NINE})
    assert env.action_format == "react"
    assert not env.step("add 1")[4]["action_valid"]
    assert env.step("Thought: x\nAction: add 1")[4]["action_valid"]
    assert env.step(env.render_command("plus 8", "eight more"))[4]["score"] == 0.5


def test_strict_reading_takes_the_letter():
    env = CountingEnv(strict=True)
    env.reset(options={"task": NINE})
    assert not env.step("Add 1")[4]["action_valid"]
    assert env.step("add 1")[4]["action_valid"]


def test_extras_come_into_info_on_request():
    env = CountingEnv(info_keys=("admissible", "state_key", "labels"))
    _, info = env.reset(options={"task": NINE})
    assert info["admissible"] == ["add 1", "add 2", "add 9", "roll", "done"]
    assert info["state_key"] == env.state_key()
    assert info["labels"] == []
    assert env.step("put a next to b")[4]["labels"] == ["a"]
    *_, info = env.step("done")
    assert info["admissible"] == env.admissible() == []
    with pytest.raises(UnknownName, match="unknown info key 'label'; did you mean 'labels'"):
        CountingEnv(info_keys=("label",))


@pytest.mark.parametrize(
    ("name", "value"),
    [("render_mode", "human"), ("compat", "agentgym"), ("action_format", "xml"), ("reward", 3)],
)
def test_unknown_names_are_refused_when_the_environment_is_made(name, value):
    with pytest.raises(UnknownName):
        CountingEnv(**{name: value})


def test_an_argument_that_does_not_exist_is_refused_with_near_ones():
    for make in (CountingEnv, functools.partial(gymnasium.make, "Test/Counting-v0")):
        for name, near in (("spli", "split"), ("hihgest", "highest")):
            message = f"unknown argument of CountingEnv '{name}'; did you mean '{near}'"
            with pytest.raises(UnknownName, match=message):
                make(**{name: "test"})
    with pytest.raises(UnknownName, match=r"valid are highest, split, tasks, .*, render_mode$"):
        CountingEnv(zzz=1)


def test_what_a_family_does_not_have_is_unsupported():
    env = BareEnv()
    env.reset(options={"task": 0})
    for name in ("oracle", "admissible", "state_key", "save_state", "clone"):
        with pytest.raises(Unsupported, match=r"bare has no '.*'; its capabilities: none"):
            getattr(env, name)()
    with pytest.raises(Unsupported):
        env.load_state(b"")
    with pytest.raises(Unsupported):
        BareEnv(info_keys=("admissible",))


def test_a_fault_leaves_a_single_environment():
    env = FaultyEnv()
    env.reset(options={"task": 0})
    with pytest.raises(EnvFault, match="the counter fell off the wall"):
        env.step("break")


def test_rendering_needs_its_mode(env):
    with pytest.raises(gymnasium.error.Error, match="render_mode= one of"):
        env.render()
    text = CountingEnv(render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        text.render()
    text.reset(options={"task": NINE})
    assert text.render() == "[0/9]"
    plain = PlainEnv(render_mode="ansi")
    plain.reset(options={"task": NINE})
    plain.step("add 9")
    assert plain.render() == "Make the counter show 9, then say done.\nturn 1 of 10, score 0.5"
    picture = CountingEnv(render_mode="rgb_array")
    picture.reset(options={"task": NINE})
    picture.step("add 5")
    assert picture.render().tolist() == np.full((4, 6, 3), 5).tolist()


def test_texts_out_of_bounds_are_cut_and_cleaned():
    class Babbling(CountingEnv):
        def _begin(self, task):
            super()._begin(task)
            return "\udfff" * (MAX_OBSERVATION + 5)

        def _execute(self, command):
            return Outcome.running("x" * (MAX_OBSERVATION + 1))

    env = Babbling()
    observation, _ = env.reset()
    assert observation == "\ufffd" * MAX_OBSERVATION
    observation, *_ = env.step("add 1" + " " * MAX_REPLY + "x")
    assert observation == "x" * MAX_OBSERVATION


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("strict", "False", "strict must be True or False, got 'False'"),
        ("instructions_in_observation", 0, "must be True or False, got 0"),
        ("info_keys", "admissible", "info_keys must be a list of texts, got 'admissible'"),
        ("info_keys", None, "info_keys must be a list of texts, got None"),
        ("tasks", [3], "tasks must be a list of ids .*, but entry 0 is 3"),
        ("tasks", {NINE}, "tasks must be a list of ids .*, got {"),
    ],
)
def test_arguments_are_json_values_and_mean_what_they_say(name, value, message):
    with pytest.raises(TypeError, match=message):
        CountingEnv(**{name: value}).reset()


def test_a_task_of_another_family_is_refused_even_if_it_was_drawn():
    task = Task("other", "other/train/1", "train", "go", "any", None, 5)
    with pytest.raises(InvalidTask, match="belongs to 'other', this is 'counting'"):
        CountingEnv(tasks=TaskSet(ListSource([task]))).reset()


def test_nothing_is_asked_of_a_world_that_is_not_there(env):
    for broken_off in (CountingEnv(), env):
        with pytest.raises(UnknownName):
            broken_off.reset(options={"task": "counting/train/no"})
        for question in (broken_off.admissible, broken_off.state_key, broken_off.save_state):
            with pytest.raises(gymnasium.error.ResetNeeded):
                question()


def test_a_family_that_lacks_a_part_cannot_be_made():
    class Unfinished(TextEnv):
        family = "unfinished"

    with pytest.raises(TypeError, match="_begin, _execute, _load_tasks, _make_grammar, _rules"):
        Unfinished()


def test_what_is_remembered_of_replies_is_bounded_and_changes_nothing(env, monkeypatch):
    monkeypatch.setattr(core, "MAX_REMEMBERED", 2)
    env.reset(options={"task": NINE, "horizon": 20})
    long = " " * core.MAX_REMEMBERED_REPLY + "add 1"
    replies = ["add 1", "add 1", "nonsense", "add 2", "add 3", long, "add 1"]
    infos = [env.step(reply)[4] for reply in replies]
    assert [info["action_valid"] for info in infos] == [reply != "nonsense" for reply in replies]
    assert list(env.unwrapped._commands) == ["add 3", "add 1"]  # "add 3" found two and no room
