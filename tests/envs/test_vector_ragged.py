"""Without lock-step: every episode at its own pace."""

import time

import numpy as np
import pytest
from counting import FaultyEnv
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from gymnasium.vector import AutoresetMode
from toys import IN_PROCESS, QUICK, receive

from agentgym_envs.errors import InvalidTask, UnknownName, Unsupported
from agentgym_envs.vector import StepResult

THREE, SIX, NINE = (f"counting/train/{number}" for number in (3, 6, 9))


@pytest.mark.parametrize("workers", QUICK)
def test_episodes_run_at_their_own_pace(make_vector, workers):
    env = make_vector(workers=workers)
    env.send_reset([2, 0], tasks=[NINE, THREE], seeds=[7, None], horizons=[None, 4])
    results = receive(env, 2)
    assert {index: result.info["task_id"] for index, result in results.items()} == {
        2: NINE,
        0: THREE,
    }
    assert all(result.is_reset and not result.fault for result in results.values())
    assert results[0].observation.startswith("Make the counter show 3")
    assert (env.get_attr("horizon")[0], env.get_attr("np_random_seed")[2]) == (4, 7)
    env.send([2], ["add 9"])
    env.send_reset([1], tasks=[SIX])
    results = receive(env, 2)
    assert results[2] == StepResult(
        "You add 9. The counter shows 9.",
        0.5,
        False,
        False,
        {
            "task_id": NINE,
            "turn": 1,
            "score": 0.5,
            "success": False,
            "action_valid": True,
            "format_errors": 0,
            "end_reason": "",
            "fault": "",
        },
        is_reset=False,
    )
    env.send([0, 2], ["done", "done"])
    results = receive(env, 2)
    assert (results[0].terminated, results[0].info["success"]) == (True, False)
    assert (results[2].terminated, results[2].info["success"]) == (True, True)
    env.send([1], ["add 6"])
    assert receive(env, 1)[1].reward == 0.5


def test_in_line_work_is_done_at_recv_in_the_order_of_sending(make_vector):
    env = make_vector()
    env.send_reset([2, 0, 1])
    assert [inner.world.target for inner in env.envs] == [0, 0, 0]
    assert [index for index, _ in env.recv(timeout=0)] == [2, 0, 1]
    env.send([1], ["add 1"])
    env.send([2, 0], ["add 2", "add 3"])
    assert [(i, r.observation[:9]) for i, r in env.recv()] == [
        (1, "You add 1"),
        (2, "You add 2"),
        (0, "You add 3"),
    ]


@pytest.mark.parametrize("workers", QUICK)
def test_there_is_nothing_to_receive_when_nothing_was_sent(make_vector, workers):
    assert make_vector(workers=workers).recv() == []
    assert make_vector(workers=workers).recv(timeout=5) == []


def test_recv_waits_for_the_first_result_or_the_timeout(faulty):
    env = faulty(2, workers="threads")
    env.reset()
    env.send([0, 1], ["hang 400", "add 1"])
    assert [index for index, _ in env.recv()] == [1]
    start = time.monotonic()
    assert env.recv(timeout=0.05) == []
    assert env.recv(timeout=0) == []
    assert 0.05 <= time.monotonic() - start < 0.35
    ((index, result),) = env.recv()
    assert (index, result.observation) == (0, "You wait. The counter shows 1.")


def test_threads_work_at_the_same_time_and_no_more_than_allowed(faulty):
    for max_threads, least, most in ((None, 0.3, 1.1), (2, 0.6, 2.0)):
        FaultyEnv.built.clear()
        env = faulty(4, workers="threads", max_threads=max_threads)
        env.reset()
        start = time.monotonic()
        env.send(range(4), ["hang 300"] * 4)
        receive(env, 4)
        assert least <= time.monotonic() - start < most  # one after the other: 1.2 s
        used = set().union(*(instance.threads for instance in FaultyEnv.built))
        assert len(used) <= (max_threads or 4)


def test_lock_step_and_pending_requests_do_not_mix(make_vector):
    env = make_vector()
    env.reset()
    env.send([1], ["add 1"])
    for call in (
        lambda: env.step(["add 1"] * 3),
        env.reset,
        env.render,
        lambda: env.call("admissible"),
        lambda: env.set_attr("highest", 3),
    ):
        with pytest.raises(AlreadyPendingCallError, match=r"pending for \[1\]; call recv"):
            call()
    env.recv()
    env.step(["add 1"] * 3)


def test_a_busy_environment_takes_no_second_request(make_vector):
    env = make_vector()
    env.reset()
    env.send([0, 1], ["add 1", "add 1"])
    with pytest.raises(AlreadyPendingCallError, match=r"environments \[1\], which have a request"):
        env.send([1, 2], ["add 1", "add 1"])
    with pytest.raises(AlreadyPendingCallError, match=r"environments \[0\]"):
        env.send_reset([0])
    assert len(env.recv()) == 2
    assert env.envs[2].world.value == 0  # nothing was sent to it


def test_an_ended_or_new_environment_takes_no_action(make_vector):
    env = make_vector()
    env.send_reset([0, 1])
    env.recv()
    env.send([0], ["done"])
    env.recv()
    for indices in ([0], [2], [1, 2]):
        with pytest.raises(ResetNeeded, match="reset them first, with send_reset"):
            env.send(indices, ["add 1"] * len(indices))
    env.send_reset([0, 1])  # an episode that has not ended may be dropped
    assert len(env.recv()) == 2


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([3], "environment 3 does not exist; there are 3"),
        ([-1], "at least 0, got -1"),
        ([0, 0], r"each environment can take one request; got indices \[0, 0\]"),
        ([True], "at least 0, got True"),
        (["0"], "at least 0, got '0'"),
    ],
)
def test_impossible_indices_are_refused(make_vector, indices, message):
    env = make_vector()
    env.reset()
    with pytest.raises(ValueError, match=message):
        env.send(indices, ["add 1"] * len(indices))


def test_an_index_in_the_place_of_indices_is_refused(make_vector):
    env = make_vector()
    env.reset()
    with pytest.raises(TypeError, match="indices must be a sequence of whole numbers, got 0"):
        env.send(0, "add 1")


def test_indices_may_come_from_numpy(make_vector):
    env = make_vector()
    env.reset()
    env.send(np.flatnonzero([True, False, True]), ["add 1", "add 2"])
    assert [index for index, _ in env.recv()] == [0, 2]


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_only_disabled_autoreset_goes_without_lock_step(make_vector, mode):
    env = make_vector(autoreset_mode=mode)
    env.reset()
    for call in (lambda: env.send([0], ["x"]), lambda: env.send_reset([0]), env.recv):
        with pytest.raises(Unsupported, match="needs autoreset_mode=DISABLED"):
            call()


@pytest.mark.parametrize("workers", IN_PROCESS)
def test_a_mistake_loses_no_result_of_the_others(make_vector, workers):
    env = make_vector(num_envs=4, workers=workers, max_threads=1 if workers == "threads" else None)
    env.send_reset(range(4), tasks=[THREE, "counting/trian/6", NINE, 99])
    if workers == "threads":
        time.sleep(0.3)
    assert [index for index, _ in env.recv()] == [0]
    with pytest.raises(UnknownName, match="counting/trian/6"):
        env.recv()
    assert [index for index, _ in env.recv()] == [2]
    with pytest.raises(InvalidTask, match="task index 99"):
        env.recv()
    assert env.recv() == []
    env.send_reset([1, 3])
    assert set(receive(env, 2)) == {1, 3}
