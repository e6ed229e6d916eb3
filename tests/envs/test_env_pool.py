"""Environments on loan."""

import subprocess
import sys
import threading
import time

import pytest
from counting import CountingEnv, FaultyEnv
from gymnasium.error import ClosedEnvironmentError

from agentgym_envs.vector import EnvPool
from agentgym_envs.wrappers import TextWrapper


@pytest.fixture
def pool_of():
    """Makes pools of environments that note what happens to them."""
    FaultyEnv.built = []
    FaultyEnv.broken_builds = FaultyEnv.broken_resets = 0
    made = []

    def make(size, **kwargs):
        made.append(EnvPool(FaultyEnv, size, **kwargs))
        return made[-1]

    yield make
    for pool in made:
        pool.close()


def closed():
    return [env.calls.count("close") for env in FaultyEnv.built]


def test_an_environment_is_made_when_it_is_needed_and_lent_again(pool_of):
    pool = pool_of(2, highest=30)
    assert FaultyEnv.built == []
    with pool.lease() as first:
        assert first.reset(options={"task": "counting/train/30"})[1]["turn"] == 0
    with pool.lease() as second:
        assert second is first
        with pool.lease() as third:
            assert third is not first
    assert closed() == [0, 0]
    pool.close()
    assert closed() == [1, 1]


def test_ids_and_wrappers_are_as_in_a_vector_environment():
    with (
        EnvPool("Test/Counting-v0", 1, env_wrappers=[TextWrapper], highest=15) as pool,
        pool.lease(split="dev") as env,
    ):
        assert isinstance(env, TextWrapper)
        assert (env.unwrapped.highest, env.split) == (15, "dev")


def test_the_same_arguments_get_the_same_environment_and_others_make_room(pool_of):
    pool = pool_of(2)
    with pool.lease(split="dev") as dev, pool.lease(split="test") as test:
        pass
    with pool.lease(split="dev") as again:
        assert again is dev
    assert closed() == [0, 0]
    with pool.lease(split="train", strict=True) as train:
        assert (train.split, train.strict) == ("train", True)
    assert closed() == [0, 1, 0]  # the one that was idle longest went
    with pool.lease(split="test") as other:
        assert other is not test


def test_an_environment_that_is_given_back_after_an_exception_is_closed(pool_of):
    pool = pool_of(1)

    def play():
        with pool.lease() as env:
            env.reset()
            env.step("crash")

    with pytest.raises(ZeroDivisionError):
        play()
    (env,) = FaultyEnv.built
    assert closed() == [1]
    with pool.lease() as fresh:
        assert fresh is not env
    other = pool.acquire()
    pool.release(other, broken=True)
    assert closed() == [1, 1]
    with pool.lease():
        pass


def test_nobody_gets_more_than_there_are(pool_of):
    pool = pool_of(2)
    with pool.lease(), pool.lease():
        start = time.monotonic()
        message = "no environment became free within 0.2 s: all 2 of the pool are on loan"
        with pytest.raises(TimeoutError, match=message), pool.lease(timeout_s=0.2):
            pass
        assert 0.2 <= time.monotonic() - start < 2
        with pytest.raises(TimeoutError):
            pool.acquire(timeout_s=0, split="dev")
    with pool.lease(timeout_s=1e12):
        giving = threading.Timer(0.1, pool.close)
        giving.start()
        pool.acquire(timeout_s=1e12)
        with pytest.raises(ClosedEnvironmentError):
            pool.acquire(timeout_s=1e12)
        giving.join()


def test_who_waits_gets_the_next_that_is_given_back(pool_of):
    pool = pool_of(1)
    env = pool.acquire()
    giving = threading.Timer(0.2, pool.release, [env])
    giving.start()
    with pool.lease(timeout_s=10) as mine:
        assert mine is env
    giving.join()
    env = pool.acquire()
    breaking = threading.Timer(0.2, lambda: pool.release(env, broken=True))
    breaking.start()
    with pool.lease(timeout_s=10) as mine:
        assert mine is not env
    breaking.join()


def test_an_environment_that_cannot_be_made_takes_no_place(pool_of):
    pool = pool_of(1)
    FaultyEnv.broken_builds = 2
    for _ in range(2):
        with pytest.raises(OSError, match="no space left"), pool.lease(timeout_s=0):
            pass
    with pool.lease(timeout_s=0):
        pass


def test_what_is_not_on_loan_is_not_taken_back(pool_of):
    pool = pool_of(1)
    env = pool.acquire()
    pool.release(env)
    for stranger in (env, CountingEnv()):
        with pytest.raises(ValueError, match="is not on loan from this pool: it was given back"):
            pool.release(stranger)
    with pool.lease(timeout_s=0):
        pass


def test_impossible_arguments_are_refused(pool_of):
    with pytest.raises(ValueError, match="size must be a whole number of at least 1, got 0"):
        pool_of(0)
    pool = pool_of(1)
    with pytest.raises(TypeError, match=r"the arguments of a lease are JSON values.*type set"):
        pool.acquire(tasks={"counting/train/3"})
    with pytest.raises(ValueError, match="unknown split 'trian'"):
        pool.acquire(split="trian")
    with pool.lease(timeout_s=0):
        pass


def test_closing_wakes_who_waits_and_closes_what_comes_back(pool_of):
    pool = pool_of(2)
    idle = pool.acquire()
    env = pool.acquire()
    pool.release(idle)
    other = pool.acquire()
    pool.release(other)
    busy = pool.acquire()
    closing = threading.Timer(0.2, pool.close)
    closing.start()
    with pytest.raises(ClosedEnvironmentError, match="the pool is closed"):
        pool.acquire(timeout_s=10)
    closing.join()
    assert sum(closed()) == 0
    pool.release(env)
    pool.release(busy, broken=True)
    assert closed() == [1, 1]
    with pytest.raises(ClosedEnvironmentError):
        pool.acquire()
    pool.close()


def test_many_threads_share_few_environments_without_ever_sharing_one(pool_of):
    pool = pool_of(3)
    in_use: set[int] = set()
    clashes, done = [], []

    def borrow(number):
        for turn in range(20):
            try:
                with pool.lease(timeout_s=30, split=("train", "dev")[(number + turn) % 2]) as env:
                    if id(env) in in_use:
                        clashes.append(number)
                    in_use.add(id(env))
                    env.reset(seed=turn)
                    time.sleep(0.0005)
                    in_use.discard(id(env))
                    if turn % 7 == 3:
                        env.step("break")
            except RuntimeError:
                continue
        done.append(number)

    threads = [threading.Thread(target=borrow, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(done) == list(range(8))
    assert clashes == []
    pool.close()
    assert closed() == [1] * len(FaultyEnv.built)


def test_environments_are_closed_when_python_ends():
    code = """
import conftest, counting
from agentgym_envs.vector import EnvPool
counting.CountingEnv.close = lambda self: print("closed", self.split)
pool = EnvPool("Test/Counting-v0", 2)
kept = pool.acquire()
with pool.lease(split="dev"):
    pass
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=__file__.rpartition("/")[0],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert sorted(done.stdout.splitlines()) == ["closed dev", "closed train"]
