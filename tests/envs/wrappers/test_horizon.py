"""`HorizonCurriculum`: episodes as long as the schedule says, and a schedule told how they end."""

import functools
import os
import pickle

import gymnasium
import pytest
from counting import CountingEnv, FaultyEnv

from agentgym_envs import testing
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import EnvFault, InvalidState
from agentgym_envs.horizons import (
    AdaptiveHorizon,
    AdaptiveRules,
    FixedHorizon,
    HorizonTracker,
    StagedHorizon,
)
from agentgym_envs.policies import run_episode
from agentgym_envs.testing import CHECKS, check_text_env, wrapped
from agentgym_envs.wrappers import HorizonCurriculum, TokenBudget, TurnBudget

NINE = {"task": "counting/train/9"}


class Recorder(StagedHorizon):
    """A schedule that keeps what it was shown."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def observe(self, step, outcomes):
        self.seen.extend(outcomes)


@pytest.fixture
def schedule():
    return Recorder([2, 4, 6], 1)


@pytest.fixture
def tracker(schedule):
    return HorizonTracker(schedule, episodes_per_step=1)


def play(env, replies, **options):
    env.reset(options=NINE | options)
    return [env.step(reply)[4]["end_reason"] for reply in replies]


def test_every_episode_is_as_long_as_the_schedule_says(tracker, schedule):
    env = HorizonCurriculum(CountingEnv(horizon=1), tracker)
    assert play(env, ["x"] * 2) == ["", "horizon"]
    assert env.horizon == env.unwrapped.horizon == 2
    assert play(env, ["add 9", "x", "done"]) == ["", "", "success"]
    assert play(env, ["add 9", "done"]) == ["", "success"]
    assert env.horizon == 6
    assert schedule.seen == [
        ("horizon", False, 2, 2, 1.0),
        ("success", True, 3, 4, 1 / 3),
        ("success", True, 2, 6, 0.0),
    ]


def test_an_episode_with_a_horizon_of_its_own_is_not_the_schedules(tracker, schedule):
    env = HorizonCurriculum(CountingEnv(), tracker)
    given = {"horizon": 3}
    assert play(env, ["x"] * 3, **given) == ["", "", "horizon"]
    assert given == {"horizon": 3}
    assert schedule.seen == []
    assert tracker.step == 0
    assert play(env, ["x"] * 2, horizon=None) == ["", "horizon"]
    assert len(schedule.seen) == 1


def test_an_episode_that_is_cut_short_is_not_reported(tracker, schedule):
    env = HorizonCurriculum(CountingEnv(), tracker)
    play(env, ["add 1"])
    play(env, ["add 1"])
    with pytest.raises(ValueError, match="a horizon is a number of turns"):
        env.reset(options={"horizon": 0})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("x")
    assert schedule.seen == []


def test_a_fault_is_not_reported(tracker, schedule):
    env = HorizonCurriculum(FaultyEnv(), tracker)
    with pytest.raises(EnvFault):
        play(env, ["add 1", "break"])
    assert play(env, ["done"]) == ["failure"]
    assert schedule.seen == [("failure", False, 1, 2, 0.0)]


def test_ends_of_wrappers_inside_are_reported_as_they_are(tracker, schedule):
    env = HorizonCurriculum(TokenBudget(CountingEnv(), max_tokens=2), tracker)
    play(env, ["add 1"])
    assert schedule.seen[0].end_reason is EndReason.BUDGET
    shorter = HorizonCurriculum(TurnBudget(CountingEnv(), max_turns=1), tracker)
    play(shorter, ["x"])
    assert schedule.seen[1] == ("horizon", False, 1, 4, 1.0)


def test_saved_states_hold_the_episode_and_not_the_schedule(tracker, schedule):
    env = HorizonCurriculum(CountingEnv(), tracker)
    play(env, ["x"])
    state, twin = env.save_state(), env.clone()
    env.step("x")
    assert tracker.step == 1
    env.load_state(state)
    assert tracker.step == 1
    env.step("add 9")
    twin.step("done")
    other = HorizonCurriculum(CountingEnv(), tracker)
    other.load_state(state)
    other.step("x")
    assert schedule.seen == [
        ("horizon", False, 2, 2, 1.0),
        ("horizon", False, 2, 2, 0.5),
        ("failure", False, 2, 2, 0.5),
        ("horizon", False, 2, 2, 1.0),
    ]
    env.reset()
    assert env.horizon == 6


def test_a_state_that_cannot_be_read_is_refused(tracker):
    env = HorizonCurriculum(CountingEnv(), tracker)
    play(env, ["x"])
    before = env.save_state()
    for old, new in ((b'"given":2', b'"given":0'), (b'"invalid":1', b'"invalid":"1"')):
        assert old in before
        with pytest.raises(InvalidState, match="not what HorizonCurriculum remembers"):
            env.load_state(before.replace(old, new))
    assert env.save_state() == before


def test_without_a_tracker_as_a_spec_makes_it_nothing_changes(tracker):
    env = HorizonCurriculum(gymnasium.make("Test/Counting-v0", horizon=7), tracker)
    env.reset()
    assert env.horizon == 2
    made = gymnasium.make(env.spec)
    made.reset()
    assert isinstance(made, HorizonCurriculum)
    assert made.horizon == 7


def test_what_is_no_tracker_is_refused():
    with pytest.raises(TypeError, match=r"needs a HorizonTracker, got FixedHorizon\(turns=3\)"):
        HorizonCurriculum(CountingEnv(), FixedHorizon(3))


def test_the_kit_passes_with_a_schedule_but_for_the_horizon_of_the_constructor():
    """It has its say only where there is no schedule."""
    tracker = HorizonTracker(StagedHorizon([9, 10], 5), episodes_per_step=3)
    elsewhere = {testing.check_processes, testing.check_silence, testing.check_stock_vector}
    wrap = functools.partial(HorizonCurriculum, tracker=tracker)
    checks = [each for each in CHECKS if each not in elsewhere | {testing.check_horizon}]
    check_text_env(wrapped("Test/Counting-v0", wrap), checks)
    assert tracker.step > 0


def test_a_run_of_episodes_climbs_to_where_the_policy_succeeds():
    """A task of two turns: at horizon 1 all end by it, at 2 the oracle solves all."""
    rules = AdaptiveRules(window=1, min_steps=3, patience=2)
    tracker = HorizonTracker(AdaptiveHorizon([1, 2, 4], rules), episodes_per_step=2)
    env = HorizonCurriculum(CountingEnv(), tracker)
    episodes = [run_episode(env, **NINE) for _ in range(20)]
    assert [each.horizon for each in episodes] == [1] * 6 + [2] * 14
    assert [each.success for each in episodes] == [False] * 6 + [True] * 14


# ----------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize("workers", ["inline", "threads"])
@pytest.mark.parametrize("autoreset_mode", ["NextStep", "SameStep"])
def test_a_vector_in_one_process_shares_one_tracker(make_vector, workers, autoreset_mode):
    schedule = Recorder([1, 2, 3], [1, 1])
    tracker = HorizonTracker(schedule)
    envs = make_vector(
        num_envs=4,
        workers=workers,
        autoreset_mode=autoreset_mode,
        env_wrappers=[functools.partial(HorizonCurriculum, tracker=tracker)],
    )
    envs.reset(seed=0)
    assert envs.get_attr("horizon") == (1,) * 4
    tracker.advance()
    for _ in range(2):
        envs.step(("x",) * 4)
    assert envs.get_attr("horizon") == (2,) * 4
    tracker.advance()
    assert schedule.seen == [("horizon", False, 1, 1, 1.0)] * 4


def test_gymnasiums_own_vector_shares_one_tracker(tracker, schedule):
    envs = gymnasium.vector.SyncVectorEnv([lambda: HorizonCurriculum(CountingEnv(), tracker)] * 3)
    envs.reset()
    envs.step(("x",) * 3)
    envs.step(("x",) * 3)
    assert tracker.step == len(schedule.seen) == 3
    envs.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing can be forked here")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_tracker_that_a_fork_copied_is_refused_there(tracker):
    """Gymnasium's own processes are forked where that can be done, and pickle nothing then."""
    env, refused = HorizonCurriculum(CountingEnv(), tracker), 7
    child = os.fork()
    if child == 0:
        try:
            env.reset()
        except TypeError as error:
            os._exit(refused if "use VectorHorizons" in str(error) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == refused
    env.reset()


def test_a_tracker_is_not_sent_to_other_processes(make_vector, tracker):
    wraps = [functools.partial(HorizonCurriculum, tracker=tracker)]
    with pytest.raises(TypeError, match="keep it in the training loop and use VectorHorizons"):
        pickle.dumps(wraps)
    with pytest.raises(TypeError, match="use VectorHorizons"):
        make_vector(num_envs=2, workers="forkserver", env_wrappers=wraps)
