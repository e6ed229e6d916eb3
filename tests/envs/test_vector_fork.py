"""Copying an episode into other environments."""

import os
import signal
import time

import gymnasium
import numpy as np
import pytest
from counting import BareEnv, FaultyEnv
from gymnasium.error import AlreadyPendingCallError, ResetNeeded
from perilous import PerilousEnv
from toys import QUICK, receive

from agentgym_envs.errors import EnvFault, Unsupported
from agentgym_envs.vector import WORKERS
from agentgym_envs.wrappers import TextWrapper

SIX, TWELVE = "counting/train/6", "counting/train/12"


def rest_of_episode(env, indices):
    """What the same replies give in some environments."""
    entries = {index: [] for index in indices}
    for reply in ("roll", "put a next to b", "what?", "roll", "done"):
        running = [index for index in indices if not (entries[index] and entries[index][-1][2])]
        env.send(running, [reply] * len(running))
        for index, result in receive(env, len(running)).items():
            entries[index].append(result)
    return entries


@pytest.mark.parametrize("workers", WORKERS)
def test_all_copies_continue_identically(make_vector, workers):
    env = make_vector(
        num_envs=4, workers=workers, info_keys=("state_key", "labels"), env_wrappers=[TextWrapper]
    )
    env.send_reset([0], tasks=[TWELVE], seeds=[5], horizons=[9])
    receive(env, 1)
    env.send([0], ["roll"])
    before = receive(env, 1)[0]
    copies = env.fork(0, [3, 1])
    assert list(copies) == [3, 1]
    for observation, info in copies.values():
        assert observation == before.observation
        assert info == before.info
    entries = rest_of_episode(env, [0, 1, 3])
    assert entries[0] == entries[1] == entries[3]
    assert len(entries[0]) == 5
    assert entries[0][0].info["turn"] == 2
    assert entries[0][-1].terminated


def test_copies_share_nothing(make_vector):
    env = make_vector(info_keys=("labels",))
    env.send_reset([1], tasks=[SIX])
    receive(env, 1)
    copies = env.fork(1, [0, 2])
    copies[0][1]["labels"].append("mine")
    assert copies[2][1]["labels"] == []
    env.send([0, 1], ["add 1", "add 2"])
    results = receive(env, 2)
    assert results[0].observation == "You add 1. The counter shows 1."
    assert results[1].observation == "You add 2. The counter shows 2."
    assert [inner.world.value for inner in env.envs] == [1, 2, 0]
    assert env.get_attr("horizon") == (10, 10, 10)


def test_a_number_takes_the_first_that_play_no_episode(make_vector):
    env = make_vector(num_envs=5)
    env.send_reset([0, 1, 2])
    receive(env, 3)
    env.send([0], ["done"])
    receive(env, 1)
    assert list(env.fork(2, 2)) == [0, 3]
    with pytest.raises(ValueError, match=r"2 environments .* are needed, but only \[4\] have none"):
        env.fork(2, 2)
    assert list(env.fork(2, 1)) == [4]


@pytest.mark.parametrize("workers", QUICK)
def test_what_others_have_pending_is_kept(faulty, workers):
    env = faulty(4, workers=workers)
    env.send_reset(range(4))
    receive(env, 4)
    env.send([3], ["hang 300"])
    env.fork(0, [1])
    env.fork(0, [2])
    assert receive(env, 1)[3].observation.startswith("You wait.")
    env.send(range(4), ["add 1"] * 4)
    assert len(receive(env, 4)) == 4


@pytest.mark.parametrize("mode", ["disabled", "next_step", "same_step"])
def test_copies_can_be_driven_in_lock_step(make_vector, mode):
    env = make_vector(num_envs=2, autoreset_mode=mode)
    env.reset(seed=3, options={"tasks": [TWELVE, SIX]})
    env.step(["add 9", "done"])
    env.fork(0, [1])
    observations, rewards, *_, infos = env.step(["add 3", "add 3"])
    assert observations == ("You add 3. The counter shows 12.",) * 2
    assert rewards.tolist() == [0.5, 0.5]
    assert infos["task_id"].tolist() == [TWELVE, TWELVE]
    assert infos["turn"].tolist() == [2, 2]


def test_the_latest_observation_of_a_copy_is_that_of_its_source(make_vector):
    env = make_vector(num_envs=3)
    env.reset(options={"tasks": [TWELVE, SIX, SIX]})
    env.step(["add 9", "add 1", "add 1"])
    env.fork(0, [1])
    observations, _ = env.reset(options={"reset_mask": np.array([False, False, True])})
    assert observations[:2] == ("You add 9. The counter shows 9.",) * 2
    assert env.fork(1, [2])[2][0] == "You add 9. The counter shows 9."


def test_impossible_forks_are_refused_and_change_nothing(make_vector):
    env = make_vector(num_envs=3)
    with pytest.raises(ResetNeeded, match=r"environments \[0\]"):
        env.fork(0, [1])
    env.send_reset([0, 1])
    receive(env, 2)
    for source, into, message in (
        (0, [0, 1], r"environment 0 cannot be forked into itself, got \[0, 1\]"),
        (0, [3], "environment 3 does not exist"),
        (0, [1, 1], "each environment can take one request"),
        (-1, [1], "at least 0, got -1"),
        (0, 0, "how many copies must be a whole number of at least 1, got 0"),
        (0, 2, r"2 environments without an episode are needed, but only \[2\] have none"),
    ):
        with pytest.raises(ValueError, match=message):
            env.fork(source, into)
    env.send([1], ["add 1"])
    for source, into in ((1, [2]), (0, [1])):
        with pytest.raises(AlreadyPendingCallError, match=r"environments \[1\]"):
            env.fork(source, into)
    assert receive(env, 1)[1].info["turn"] == 1


@pytest.mark.parametrize("workers", QUICK)
def test_a_family_that_cannot_save_says_so(make_vector, workers):
    env = make_vector(BareEnv, 2, workers=workers)
    env.reset()
    with pytest.raises(Unsupported, match="bare has no 'clone'"):
        env.fork(0, [1])
    env.step(["add 1", "add 1"])


def test_a_wrapper_whose_state_would_be_lost_is_refused(make_vector):
    env = make_vector(env_wrappers=[lambda inner: gymnasium.wrappers.TimeLimit(inner, 3)])
    env.reset()
    with pytest.raises(Unsupported, match=r"TimeLimit has no save_state\(\)"):
        env.fork(0, [1])


def test_a_target_whose_process_has_died_gets_another(make_vector):
    env = make_vector(PerilousEnv, 3, workers="forkserver")
    env.reset(options={"tasks": [TWELVE] * 3})
    env.step(["add 9", "add 1", "add 1"])
    for pid in env.get_attr("pid")[1:]:
        os.kill(pid, signal.SIGKILL)
    time.sleep(0.2)
    assert list(env.fork(0, [1, 2])) == [1, 2]
    observations, *_ = env.step(["add 1"] * 3)
    assert observations == ("You add 1. The counter shows 10.",) * 3


@pytest.mark.parametrize("workers", ["inline", "threads"])
def test_a_copy_that_fails_leaves_its_target_to_be_reset(make_vector, workers):
    class Forgetful(FaultyEnv):
        def load_state(self, state):
            raise EnvFault("no memory")

    env = make_vector(Forgetful, 3, workers=workers)
    env.reset()
    with pytest.raises(EnvFault, match="no memory"):
        env.fork(0, [1])
    with pytest.raises(ResetNeeded, match=r"environments \[1\]"):
        env.send([1], ["add 1"])
    env.send([0, 2], ["add 1", "add 1"])
    assert len(receive(env, 2)) == 2
