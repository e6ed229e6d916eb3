"""Making vector environments, lock-step, calls and closing."""

import subprocess
import sys
import threading

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv, FaultyEnv
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.vector import AutoresetMode
from toys import IN_PROCESS, QUICK, assert_same, assert_same_infos

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.vector import TextVectorEnv
from agentgym_envs.vector.results import batch_infos
from agentgym_envs.wrappers import TextWrapper

THREE, SIX, NINE, TWELVE = (f"counting/train/{number}" for number in (3, 6, 9, 12))


# ------------------------------------------------------------------------------------------ making


def test_make_vec_gives_this_vector_environment():
    env = gymnasium.make_vec("Test/Counting-v0", num_envs=3, workers="threads", highest=30)
    assert isinstance(env, TextVectorEnv)
    assert env.num_envs == 3
    assert env.get_attr("highest") == (30, 30, 30)
    assert env.autoreset_mode is env.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    assert env.spec.kwargs["workers"] == "threads"
    again = gymnasium.make_vec(env.spec)
    assert (again.num_envs, again.get_attr("highest")) == (3, (30, 30, 30))
    for vector in (env, again):
        vector.close()


def test_an_environment_made_directly_has_a_spec_that_makes_it_again(make_vector):
    env = make_vector("counting:Test/Counting-v0", 2, autoreset_mode="same_step", highest=30)
    again = gymnasium.make_vec(type(env.spec).from_json(env.spec.to_json()))
    assert again.autoreset_mode is AutoresetMode.SAME_STEP
    assert (again.num_envs, again.get_attr("highest")) == (2, (30, 30))
    assert make_vector(CountingEnv).spec is None


@pytest.mark.parametrize("name", ["NextStep", "next_step", "NEXT_STEP", AutoresetMode.NEXT_STEP])
def test_an_autoreset_mode_is_given_by_name_or_itself(make_vector, name):
    assert make_vector(autoreset_mode=name).autoreset_mode is AutoresetMode.NEXT_STEP


def test_spaces_are_batches_of_text(make_vector):
    env = make_vector()
    assert ("a", "b", "c") in env.action_space
    assert env.reset()[0] in env.observation_space
    assert env.single_action_space == CountingEnv().action_space


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"workers": "thread"}, UnknownName, "kind of workers 'thread'; did you mean 'threads'"),
        ({"autoreset_mode": "never"}, UnknownName, "unknown autoreset mode 'never'"),
        ({"num_envs": 0}, ValueError, "num_envs must be a whole number of at least 1, got 0"),
        ({"max_episode_steps": 0}, ValueError, "max_episode_steps must be a whole number"),
        ({"step_timeout_s": 1.0}, ValueError, "caller's thread: they cannot keep step_timeout_s"),
        ({"workers": "threads", "step_timeout_s": 0}, ValueError, "step_timeout_s must be pos"),
        ({"workers": "threads", "max_threads": 1.5}, ValueError, "max_threads must be a whole"),
        ({"workers": ["inline"]}, UnknownName, r"unknown kind of workers \['inline'\]"),
        ({"split": "trian"}, UnknownName, "unknown split 'trian'; did you mean 'train'"),
        ({"workers": "threads", "split": "x"}, UnknownName, "unknown split 'x'"),
    ],
)
def test_what_cannot_be_made_is_refused(make_vector, kwargs, error, message):
    with pytest.raises(error, match=message):
        make_vector(**kwargs)


def test_wrappers_are_applied_to_each_environment(make_vector):
    env = make_vector(
        env_wrappers=[TextWrapper, lambda inner: gymnasium.wrappers.TimeLimit(inner, 2)],
        action_format="react",
    )
    assert all(isinstance(inner.env, TextWrapper) for inner in env.envs)
    env.reset()
    env.step(["x"] * 3)
    *_, truncations, infos = env.step(["x"] * 3)
    assert truncations.all()
    assert infos["end_reason"].tolist() == ["horizon"] * 3


def test_max_episode_steps_only_shortens(make_vector):
    env = make_vector(max_episode_steps=4)
    env.reset(options={"horizons": [2, None, 50]})
    assert env.get_attr("horizon") == (2, 4, 4)
    env = gymnasium.make_vec("Test/Counting-v0", num_envs=1, max_episode_steps=40)
    env.reset()
    assert env.get_attr("horizon") == (10,)


# --------------------------------------------------------------------------------------- lock-step


@pytest.mark.parametrize("workers", QUICK)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_lock_step_gives_what_the_stock_vector_environment_gives(make_vector, workers, mode):
    ours = make_vector(num_envs=4, workers=workers, autoreset_mode=mode, info_keys=("admissible",))
    stock = gymnasium.make_vec(
        "Test/Counting-v0",
        num_envs=4,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        info_keys=("admissible",),
    )
    rng = np.random.default_rng(0)
    assert_same(ours.reset(seed=3), stock.reset(seed=3))
    num_ended = 0
    for _ in range(60):
        replies = rng.choice(["add 9", "roll", "what?", "done", "take away 1"], size=4).tolist()
        results = ours.step(replies)
        assert_same(results, stock.step(replies))
        ended = results[2] | results[3]
        num_ended += ended.sum()
        if mode is AutoresetMode.DISABLED and ended.any():
            mine, theirs = ({"reset_mask": ended.copy()} for _ in range(2))
            assert_same(ours.reset(seed=9, options=mine), stock.reset(seed=9, options=theirs))
    assert num_ended > 10


def test_infos_are_batched_as_gymnasium_does():
    infos = [
        {"n": 1, "x": 0.5, "flag": True, "text": "a", "list": [1, 2], "none": None},
        {"n": 2, "array": np.arange(3), "nested": {"deep": {"r": 1.5}, "k": "v"}},
        None,
        {"n": np.int32(4), "x": 2, "np": np.float32(1.5), "list": [3], "nested": {"k": "w"}},
    ]
    stock = gymnasium.vector.VectorEnv()
    stock.num_envs = len(infos)
    expected = {}
    for index, info in enumerate(infos):
        expected = stock._add_info(expected, info or {}, index)
    ours = batch_infos(infos)
    assert_same_infos(ours, expected)
    assert batch_infos([None, {}]) == {}


def test_infos_that_have_nothing_in_common_come_through_as_they_are():
    mixed = {
        "n": [1, 2.5],  # Gymnasium makes 2 of it
        "flag": [True, 5],
        "hash": [1 << 80, 1],
        "any": [1, "one"],
        "none": [0.5, None],
        "nested": [{"a": 1}, "gone"],
    }
    batch = batch_infos([{key: values[index] for key, values in mixed.items()} for index in (0, 1)])
    assert {key: batch[key].tolist() for key in mixed} == mixed
    arrays = [np.arange(2), np.arange(3)]
    (short, long), mask = batch_infos([{"board": array} for array in arrays]).values()
    assert (short.tolist(), long.tolist(), mask.tolist()) == ([0, 1], [0, 1, 2], [True, True])


def test_a_number_as_seed_counts_up_and_a_list_is_taken_as_it_is(make_vector):
    env = make_vector(num_envs=8)
    env.reset(seed=5)
    tasks = [task.id for task in env.get_attr("task")]
    singles = [CountingEnv().reset(seed=5 + index)[1]["task_id"] for index in range(8)]
    assert tasks == singles
    env.reset(seed=[5] * 8)
    assert {task.id for task in env.get_attr("task")} == {singles[0]}
    env.reset(options={"seeds": [5 + index for index in range(8)]})
    assert [task.id for task in env.get_attr("task")] == singles


def test_tasks_seeds_and_horizons_are_given_per_environment(make_vector):
    env = make_vector()
    task = CountingEnv().tasks[0]
    _, infos = env.reset(
        seed=[1, None, 3], options={"tasks": [TWELVE, task, 2], "horizons": [5, None, 7]}
    )
    assert infos["task_id"].tolist() == [TWELVE, THREE, NINE]
    assert env.get_attr("horizon") == (5, 10, 7)
    seeds = env.get_attr("np_random_seed")
    assert (seeds[0], seeds[2]) == (1, 3)


def test_other_options_go_to_every_environment(make_vector):
    env = make_vector()
    _, infos = env.reset(options={"task": SIX, "horizon": 3, "tasks": [None, NINE, None]})
    assert infos["task_id"].tolist() == [SIX, NINE, SIX]
    assert env.get_attr("horizon") == (3, 3, 3)


def test_a_masked_reset_touches_nothing_else_and_keeps_the_callers_options(make_vector):
    env = make_vector()
    env.reset(seed=0, options={"tasks": [NINE] * 3})
    env.step(["add 1", "done", "add 2"])
    mask = np.array([False, True, False])
    options = {"reset_mask": mask, "tasks": [THREE] * 3}
    observations, infos = env.reset(options=options)
    assert options == {"reset_mask": mask, "tasks": [THREE] * 3}
    assert observations[0] == "You add 1. The counter shows 1."
    assert observations[1].startswith("Make the counter show 3")
    assert infos["_task_id"].tolist() == [False, True, False]
    assert infos["task_id"].tolist() == [None, THREE, None]
    env.step(["add 1", "add 1", "add 1"])
    assert [inner.world.value for inner in env.envs] == [2, 1, 3]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"reset_mask": [True, False, True]}, TypeError, "array of bool"),
        ({"reset_mask": np.array([1, 0, 1])}, TypeError, "array of bool"),
        ({"reset_mask": np.array([True])}, ValueError, r"must have shape \(3,\)"),
        ({"reset_mask": np.zeros(3, bool)}, ValueError, "true for no environment"),
        ({"tasks": NINE}, TypeError, "tasks must be a sequence of 3 entries, got 'counting"),
        ({"tasks": [NINE]}, ValueError, "tasks must have 3 entries, one an env; got 1"),
        ({"tasks": [1.5, None, None]}, ValueError, "no id and no Task .*got 1.5"),
        ({"seeds": [-1, 0, 1]}, ValueError, "a seed must be a whole number of at least 0, got -1"),
        ({"horizons": [0, 1, 2]}, ValueError, "a horizon must be a whole .* at least 1, got 0"),
        ({"horizon": 0}, ValueError, "a horizon must be a whole number of at least 1, got 0"),
        ({"max_horizon": "9"}, ValueError, "a horizon must be a whole .* at least 1, got '9'"),
        ({"task": 1.5}, ValueError, "no id and no Task .*got 1.5"),
    ],
)
def test_impossible_options_are_refused_before_anything_is_reset(
    make_vector, options, error, message
):
    env = make_vector()
    with pytest.raises(error, match=message):
        env.reset(options=options)
    with pytest.raises(ValueError, match=r"either seed= or .*, not both"):
        env.reset(seed=1, options={"seeds": [1, 2, 3]})
    with pytest.raises(ResetNeeded):
        env.step(["add 1"] * 3)


@pytest.mark.parametrize("workers", QUICK)
def test_a_mistake_in_one_environment_is_raised_after_all_have_been_reset(make_vector, workers):
    env = make_vector(workers=workers)
    for tasks, error, message in (
        ([THREE, "counting/trian/6", NINE], UnknownName, "did you mean .*counting/train/6"),
        ([THREE, 99, NINE], InvalidTask, "task index 99 is out of range"),
    ):
        with pytest.raises(error, match=message):
            env.reset(options={"tasks": tasks})
        with pytest.raises(ResetNeeded, match=r"environments \[1\]"):
            env.step(["add 1"] * 3)
        env.reset(options={"reset_mask": np.array([False, True, False])})
        env.step(["add 1"] * 3)
    with pytest.raises(UnknownName, match="unknown reset option 'taks'; did you mean 'task'"):
        env.reset(options={"taks": [1, 2, 3]})


def test_steps_need_a_reset_and_one_text_each(make_vector):
    env = make_vector()
    with pytest.raises(ResetNeeded, match=r"environments \[0, 1, 2\]"):
        env.step(["add 1"] * 3)
    env.reset()
    for actions, error, message in (
        ("add", TypeError, "a sequence of 3 texts, got one str"),
        (["add 1"] * 2, ValueError, "expected 3 texts, one an environment; got 2"),
        (["add 1", 2, "add 1"], TypeError, "an action is a str, the policy's reply; got int"),
    ):
        with pytest.raises(error, match=message):
            env.step(actions)
    for actions in (("add 1",) * 3, np.array(["add 1"] * 3, dtype=object), np.array(["add 1"] * 3)):
        env.step(actions)
    assert [inner.world.value for inner in env.envs] == [3, 3, 3]


def test_an_ended_environment_must_be_reset_where_nobody_does_it(make_vector):
    env = make_vector()
    env.reset()
    env.step(["add 1", "done", "done"])
    with pytest.raises(ResetNeeded, match=r"environments \[1, 2\] have ended"):
        env.step(["add 1"] * 3)


def test_autoreset_needs_a_first_reset(make_vector):
    env = make_vector(autoreset_mode="next_step")
    with pytest.raises(ResetNeeded):
        env.step(["add 1"] * 3)
    env.reset(options={"reset_mask": np.array([True, False, False])})
    with pytest.raises(ResetNeeded, match=r"environments \[1, 2\]"):
        env.step(["add 1"] * 3)


# ------------------------------------------------------------------------------- calls and closing


@pytest.mark.parametrize("workers", QUICK)
def test_methods_and_attributes_of_the_environments(make_vector, workers):
    env = make_vector(workers=workers, env_wrappers=[TextWrapper], render_mode="ansi")
    env.reset(options={"tasks": [NINE, SIX, THREE]})
    assert env.render() == ("[0/9]", "[0/6]", "[0/3]")
    assert env.call("render_command", "plus 3") == ("add 3",) * 3
    assert [task.id for task in env.get_attr("task")] == [NINE, SIX, THREE]
    env.set_attr("highest", [1, 2, 3])
    assert env.get_attr("highest") == (1, 2, 3)
    env.set_attr("highest", 8)
    assert env.get_attr("highest") == (8, 8, 8)
    with pytest.raises(ValueError, match="expected 3 values, one an env; got 2"):
        env.set_attr("highest", [1, 2])
    with pytest.raises(AttributeError, match="colour"):
        env.get_attr("colour")
    for name in ("reset", "step", "close"):
        with pytest.raises(ValueError, match=f"would go unnoticed; use {name}"):
            env.call(name)
    env.step(["add 1"] * 3)  # a call that failed has broken nothing


def test_rendering_needs_a_mode(make_vector):
    env = make_vector()
    env.reset()
    with pytest.raises(gymnasium.error.Error, match="render_mode="):
        env.render()


def test_only_in_line_workers_hand_out_their_environments(make_vector):
    assert [type(env) for env in make_vector().envs] == [CountingEnv] * 3
    assert not hasattr(make_vector(workers="threads"), "envs")


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_closing_closes_every_environment_once(faulty, workers):
    env = faulty(workers=workers)
    env.reset()
    env.send([0], ["add 1"])
    env.close()
    env.close()
    assert [each.calls.count("close") for each in FaultyEnv.built] == [1, 1, 1]
    for call in (env.reset, lambda: env.step(["x"] * 3), env.recv, lambda: env.get_attr("task")):
        with pytest.raises(ClosedEnvironmentError, match="after close"):
            call()
    with pytest.raises(ClosedEnvironmentError, match="after close"):
        _ = env.envs


def test_closing_leaves_no_thread_behind(make_vector):
    before = threading.active_count()
    env = make_vector(num_envs=8, workers="threads")
    env.reset()
    assert threading.active_count() > before
    env.close()
    assert threading.active_count() == before


def test_a_thread_that_hangs_does_not_keep_the_process_alive():
    code = """
import conftest, sys
from agentgym_envs.vector import TextVectorEnv
env = TextVectorEnv("Test/Faulty-v0", 1, workers="threads", step_timeout_s=0.1)
env.reset()
print(env.step(["hang 60000"])[4]["fault"][0])
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=__file__.rpartition("/")[0],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.startswith("step() took longer than 0.1 s")
