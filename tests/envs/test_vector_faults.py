"""Worlds that break, hang or are interrupted."""

import os
import signal
import threading
import time

import numpy as np
import pytest
from counting import CountingEnv, FaultyEnv
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode
from perilous import PerilousEnv
from toys import IN_PROCESS, QUICK, receive

from agentgym_envs.errors import EnvFault
from agentgym_envs.vector import FAULT_OBSERVATION, StepResult

NINE = "counting/train/9"


@pytest.mark.parametrize("workers", IN_PROCESS)
@pytest.mark.parametrize(
    ("command", "fault"),
    [("break", "the counter fell off the wall"), ("crash", "ZeroDivisionError: a bug")],
)
def test_a_broken_environment_ends_its_episode_and_no_other(faulty, workers, command, fault):
    env = faulty(workers=workers)
    env.send_reset(range(3), tasks=[NINE] * 3)
    receive(env, 3)
    env.send(range(3), ["add 9"] * 3)
    receive(env, 3)
    env.send(range(3), ["add 1", command, "done"])
    results = receive(env, 3)
    assert results[1] == StepResult(
        FAULT_OBSERVATION,
        0.0,
        terminated=False,
        truncated=True,
        info={
            "task_id": NINE,
            "turn": 2,
            "score": 0.5,
            "success": False,
            "action_valid": False,
            "format_errors": 0,
            "end_reason": "fault",
            "fault": fault,
        },
        is_reset=False,
        fault=fault,
    )
    assert results[2].info["success"]
    with pytest.raises(ResetNeeded):
        env.send([1], ["add 1"])
    env.send_reset([1], tasks=[NINE])
    env.send([0], ["take away 1"])
    assert not receive(env, 2)[1].fault
    env.send([1], ["add 9"])
    assert receive(env, 1)[1].info["score"] == 0.5
    broken = [instance for instance in FaultyEnv.built if command in instance.calls]
    assert [instance.calls[-2:] for instance in broken] == [[command, "close"]]


@pytest.mark.parametrize("workers", QUICK)
@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_fault_in_lock_step_is_a_truncation_without_reward(faulty, workers, mode):
    env = faulty(workers=workers, autoreset_mode=mode)
    env.reset(options={"tasks": [NINE] * 3})
    observations, rewards, terminations, truncations, infos = env.step(["add 9", "break", "add 1"])
    assert rewards.tolist() == [0.5, 0.0, 0.0]
    assert terminations.tolist() == [False] * 3
    assert truncations.tolist() == [False, True, False]
    if mode is AutoresetMode.SAME_STEP:
        assert observations[1].startswith("Make the counter show")
        assert infos["final_obs"].tolist() == [None, FAULT_OBSERVATION, None]
        assert infos["final_info"]["fault"].tolist()[1] == "the counter fell off the wall"
        assert infos["final_info"]["end_reason"].tolist()[1] == "fault"
        assert infos["fault"].tolist() == ["", "", ""]
    else:
        assert observations[1] == FAULT_OBSERVATION
        assert infos["fault"].tolist() == ["", "the counter fell off the wall", ""]
        assert infos["end_reason"].tolist() == ["", "fault", ""]
    if mode is AutoresetMode.DISABLED:
        env.reset(options={"reset_mask": truncations})
    elif mode is AutoresetMode.NEXT_STEP:
        observations, *_ = env.step(["add 1"] * 3)
        assert observations[1].startswith("Make the counter show")
    *_, infos = env.step(["roll"] * 3)
    assert infos["fault"].tolist() == ["", "", ""]
    assert infos["turn"][1] == 1


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_a_reset_that_breaks_is_reported_and_tried_again(faulty, workers):
    env = faulty(workers=workers)
    FaultyEnv.broken_resets = 1
    env.send_reset([0], tasks=[NINE])
    result = receive(env, 1)[0]
    assert (result.is_reset, result.fault, result.truncated) == (True, "the wall is gone", True)
    assert result.observation == FAULT_OBSERVATION
    assert (result.info["task_id"], result.info["turn"], result.reward) == (NINE, 0, 0.0)
    with pytest.raises(ResetNeeded):
        env.send([0], ["add 1"])
    env.send_reset([0], tasks=[NINE])
    assert not receive(env, 1)[0].fault

    FaultyEnv.broken_resets = 1
    _, infos = env.reset()
    assert sorted(infos["fault"].tolist()) == ["", "", "the wall is gone"]
    faulted = infos["fault"] != ""
    with pytest.raises(ResetNeeded):
        env.step(["add 1"] * 3)
    env.reset(options={"reset_mask": faulted})
    env.step(["add 1"] * 3)


def test_autoresets_that_break_are_tried_again_at_each_step(faulty):
    for mode in ("next_step", "same_step"):
        env = faulty(1, autoreset_mode=mode)
        env.reset()
        FaultyEnv.broken_resets = 2
        steps = [env.step(["break"])] + [env.step(["add 1"]) for _ in range(3)]
        faults = [infos["fault"][0] for *_, infos in steps]
        truncated = [bool(truncations[0]) for *_, truncations, _ in steps]
        if mode == "next_step":
            wall = "the counter fell off the wall"
            assert faults == [wall, "the wall is gone", "the wall is gone", ""]
            assert truncated == [True, True, True, False]
        else:
            assert faults == ["the wall is gone", "", "", ""]
            assert truncated == [True, True, False, False]
            assert steps[1][4]["final_info"]["fault"].tolist() == ["the wall is gone"]


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_an_environment_that_cannot_be_built_again_says_so(faulty, workers):
    env = faulty(2, workers=workers)
    env.reset()
    env.send([0], ["break"])
    receive(env, 1)
    FaultyEnv.broken_builds = 1
    env.send_reset([0])
    assert receive(env, 1)[0].fault == (
        "the environment could not be built: OSError: no space left on the wall"
    )
    env.send_reset([0])
    assert not receive(env, 1)[0].fault
    env.send([0, 1], ["add 1", "add 1"])
    assert all(not result.fault for result in receive(env, 2).values())


def test_a_hung_step_is_given_up_and_its_late_answer_ignored(faulty):
    env = faulty(2, workers="threads", step_timeout_s=0.2)
    env.send_reset([0, 1], tasks=[NINE, NINE])
    receive(env, 2)
    env.send([0, 1], ["hang 1200", "add 1"])
    start = time.monotonic()
    results = receive(env, 2)
    assert 0.2 <= time.monotonic() - start < 1.0
    assert results[0].fault == "step() took longer than 0.2 s; the worker was replaced"
    assert (results[0].truncated, results[0].info["end_reason"]) == (True, "fault")
    assert results[1].observation == "You add 1. The counter shows 1."
    abandoned = next(each for each in FaultyEnv.built if "hang 1200" in each.calls)

    env.send_reset([0], tasks=[NINE])
    receive(env, 1)
    env.send([0], ["add 2"])
    assert receive(env, 1)[0].observation == "You add 2. The counter shows 2."
    assert abandoned.calls[-1] == "hang 1200"
    while abandoned.calls[-1] != "close" and time.monotonic() - start < 10:
        time.sleep(0.05)
    assert abandoned.calls[-2:] == ["hang 1200", "close"]  # by its own thread
    assert env.recv(timeout=0) == []
    env.send([0], ["add 1"])
    assert receive(env, 1)[0].observation == "You add 1. The counter shows 3."


def test_hung_environments_do_not_use_up_the_threads(faulty):
    env = faulty(4, workers="threads", step_timeout_s=0.15, max_threads=1)
    env.reset()
    env.send(range(4), ["hang 800", "hang 800", "add 1", "hang 800"])
    results = receive(env, 4)
    assert [bool(results[index].fault) for index in range(4)] == [True, True, False, True]


def test_time_in_the_queue_does_not_count(faulty):
    env = faulty(4, workers="threads", step_timeout_s=0.8, max_threads=1)
    env.reset()
    env.send(range(4), ["hang 250"] * 4)
    assert not any(result.fault for result in receive(env, 4).values())


def test_a_hung_reset_is_given_up(make_vector):
    class Slow(CountingEnv):
        hang = True

        def reset(self, **kwargs):
            if Slow.hang:
                time.sleep(0.6)
            return super().reset(**kwargs)

    env = make_vector(Slow, 2, workers="threads", reset_timeout_s=0.15)
    _, infos = env.reset()
    fault = "reset() took longer than 0.15 s; the worker was replaced"
    assert infos["fault"].tolist() == [fault, fault]
    Slow.hang = False
    _, infos = env.reset()
    assert infos["fault"].tolist() == ["", ""]


def test_nonsense_for_a_step_is_a_fault(make_vector):
    class Nonsense(CountingEnv):
        def step(self, action):
            observation, *numbers, info = super().step(action)
            return {
                "add 1": (3, *numbers, info),
                "add 2": (observation, *numbers),
                "add 3": (observation, *numbers, "info"),
                "add 4": None,
            }[action]

    env = make_vector(Nonsense, 4)
    env.reset()
    *_, infos = env.step(["add 1", "add 2", "add 3", "add 4"])
    sentence = "step() must return a text, three values and a dict, got "
    assert all(fault.startswith(sentence) for fault in infos["fault"][:3])
    assert infos["fault"][3] == "TypeError: object of type 'NoneType' has no len()"


@pytest.mark.parametrize("workers", IN_PROCESS)
@pytest.mark.parametrize(
    ("position", "value", "fault"),
    [
        (1, None, "TypeError: float() argument must be a string or a real number"),
        (1, "much", "ValueError: could not convert string to float: 'much'"),
        (2, np.array([True, False]), "ValueError: The truth value of an array"),
        (3, np.array([True, False]), "ValueError: The truth value of an array"),
    ],
)
def test_a_nonsensical_number_is_a_fault_of_its_own_environment(
    make_vector, workers, position, value, fault
):
    class Nonsense(CountingEnv):
        def step(self, action):
            answer = list(super().step(action))
            if action == "add 2":
                answer[position] = value
            return tuple(answer)

    env = make_vector(Nonsense, 3, workers=workers)
    env.reset()
    observations, *_, infos = env.step(["add 1", "add 2", "add 3"])
    assert infos["fault"][1].startswith(fault)
    assert observations[::2] == tuple(f"You add {n}. The counter shows {n}." for n in (1, 3))


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_numbers_of_numpy_become_those_of_python(make_vector, workers):
    class Numpy(CountingEnv):
        def step(self, action):
            observation, _, _, _, info = super().step(action)
            return observation, np.float32(0.5), np.False_, np.int64(1), info

    env = make_vector(Numpy, 1, workers=workers)
    env.reset()
    env.send([0], ["add 1"])
    _, *numbers = receive(env, 1)[0][:4]
    assert [(number, type(number)) for number in numbers] == [
        (0.5, float),
        (False, bool),
        (True, bool),
    ]


@pytest.mark.parametrize("workers", QUICK)
def test_an_error_without_a_message_is_a_fault(make_vector, workers):
    env = make_vector(PerilousEnv, 2, workers=workers)
    env.reset()
    *_, infos = env.step(["mumble", "add 1"])
    assert infos["fault"].tolist() == ["Mumbled: ", ""]


def test_a_fault_that_forgot_to_call_its_base_may_be_tried_again(make_vector):
    class Gone(EnvFault):
        def __init__(self, place):
            self.place = place

    class Vanishing(CountingEnv):
        def step(self, action):
            raise Gone("the wall")

    env = make_vector(Vanishing, 1)
    env.reset()
    env.send([0], ["add 1"])
    result = receive(env, 1)[0]
    assert (result.fault, result.retryable) == ("the wall", True)


@pytest.mark.parametrize("workers", ["threads", "forkserver"])
def test_a_world_that_ends_the_program_ends_its_episode_only(make_vector, workers):
    env = make_vector(PerilousEnv, 2, workers=workers)
    env.reset()
    *_, infos = env.step(["leave", "add 1"])
    assert infos["fault"].tolist() == ["interrupted by SystemExit", ""]


def test_nonsense_for_a_reset_is_a_fault(make_vector):
    class Nonsense(CountingEnv):
        def reset(self, **kwargs):
            return super().reset(**kwargs)[0]

    _, infos = make_vector(Nonsense, 1).reset()
    assert infos["fault"][0].startswith("reset() must return a text and a dict, got 'Make the")


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_an_interrupt_passes_through_and_loses_nothing(faulty, workers):
    env = faulty(workers=workers)
    env.send_reset(range(3))
    receive(env, 3)
    env.send(range(3), ["add 1", "interrupt", "add 1"])
    results = {}

    def receive_all():
        while len(results) < 3:
            results.update(env.recv(timeout=10))

    with pytest.raises(KeyboardInterrupt):
        receive_all()
    assert 1 not in results
    receive_all()
    assert results[1].fault == "interrupted by KeyboardInterrupt"
    assert [results[index].observation[:9] for index in (0, 2)] == ["You add 1", "You add 1"]
    env.send_reset([1])
    assert not receive(env, 1)[1].fault


@pytest.mark.parametrize("workers", QUICK)
def test_ctrl_c_while_waiting_reaches_the_caller(faulty, workers):
    env = faulty(2, workers=workers)
    env.reset()
    env.send([0, 1], ["hang 800", "add 1"])
    if workers != "inline":
        assert [index for index, _ in env.recv()] == [1]
    press = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        env.recv()
    assert time.monotonic() - start < 0.7
    press.join()
    results = receive(env, 2 if workers == "inline" else 1)
    assert bool(results[0].fault) == (workers == "inline")  # other workers go on undisturbed


@pytest.mark.parametrize("workers", QUICK)
def test_what_an_interrupt_loses_on_its_way_to_the_caller_becomes_a_fault(
    faulty, workers, monkeypatch
):
    env = faulty(2, workers=workers)
    env.reset()
    collect = env._pool.collect

    def interrupted_collect(timeout):
        collect(None)
        raise KeyboardInterrupt

    env.send([0], ["add 1"])
    monkeypatch.setattr(env._pool, "collect", interrupted_collect)
    with pytest.raises(KeyboardInterrupt):
        env.recv()
    monkeypatch.undo()
    assert receive(env, 1)[0].fault == "interrupted by KeyboardInterrupt"
    assert env.recv() == []
    env.send_reset([0])
    assert not receive(env, 1)[0].fault


@pytest.mark.parametrize("workers", QUICK)
def test_what_an_interrupt_keeps_from_being_sent_becomes_a_fault(faulty, workers, monkeypatch):
    env = faulty(2, workers=workers)
    env.reset()

    def interrupted_submit(request):
        raise KeyboardInterrupt

    monkeypatch.setattr(env._pool, "submit", interrupted_submit)
    with pytest.raises(KeyboardInterrupt):
        env.send([1], ["add 1"])
    monkeypatch.undo()
    env.send([0], ["hang 200"])
    assert receive(env, 2)[1].fault == "interrupted by KeyboardInterrupt"
    env.reset()
    assert env.step(["add 1", "add 1"])[4]["fault"].tolist() == ["", ""]


def test_an_interrupt_in_lock_step_leaves_every_environment_to_be_reset(faulty):
    env = faulty()
    env.reset()
    with pytest.raises(KeyboardInterrupt):
        env.step(["add 1", "interrupt", "add 1"])
    with pytest.raises(ResetNeeded, match=r"environments \[0, 1, 2\]"):
        env.step(["add 1"] * 3)
    env.reset()
    env.step(["add 1"] * 3)


@pytest.mark.parametrize("mode", ["next_step", "same_step", "disabled"])
def test_lock_step_goes_on_after_ctrl_c(faulty, mode):
    env = faulty(workers="threads", autoreset_mode=mode)
    env.reset()
    press = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        env.step(["hang 400", "add 1", "add 1"])
    press.join()
    if mode == "disabled":
        with pytest.raises(ResetNeeded, match=r"environments \[0, 1, 2\]"):
            env.step(["add 1"] * 3)
        assert env.recv() == []
        observations, infos = env.reset()
    else:
        observations, *_, infos = env.step(["add 1"] * 3)
    assert all("The counter shows 0" in observation for observation in observations)
    assert infos["fault"].tolist() == ["", "", ""]
    env.step(["add 1"] * 3)
