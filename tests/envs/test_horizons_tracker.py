"""Counting training steps for loops that have no schedule of their own, also over a vector."""

import json
import threading

import numpy as np
import pytest

from agentgym_envs.episodes import EndReason
from agentgym_envs.horizons import (
    AdaptiveHorizon,
    AdaptiveRules,
    EpisodeOutcome,
    FixedHorizon,
    HorizonTracker,
    StagedHorizon,
    VectorHorizons,
)
from agentgym_envs.vector import WORKERS

CUT = EpisodeOutcome(EndReason.HORIZON, False, 2, 2)
QUICK = AdaptiveRules(window=1, min_steps=2, patience=1)


class Recorder(StagedHorizon):
    """A schedule that keeps what it was shown."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def observe(self, step, outcomes):
        self.seen.append((step, list(outcomes)))


def test_the_loop_says_when_a_step_is_over():
    schedule = Recorder([2, 4, 6], [2, 1])
    tracker = HorizonTracker(schedule)
    horizons = []
    for step in range(5):
        horizons.append(tracker.horizon)
        assert tracker.step == step
        tracker.ended([CUT] * step)
        tracker.advance()
    assert horizons == [2, 2, 4, 6, 6]
    assert schedule.seen == [(step, [CUT] * step) for step in range(5)]


def test_or_so_many_episodes_are_a_step():
    schedule = Recorder([2, 4], [2])
    tracker = HorizonTracker(schedule, episodes_per_step=3)
    tracker.ended([CUT] * 5)
    assert (tracker.step, tracker.horizon) == (1, 2)
    tracker.ended([CUT])
    assert (tracker.step, tracker.horizon) == (2, 4)
    assert schedule.seen == [(0, [CUT] * 3), (1, [CUT] * 3)]


def test_steps_are_counted_in_one_way_only():
    tracker = HorizonTracker(FixedHorizon(3), episodes_per_step=4)
    with pytest.raises(RuntimeError, match="a step is 4 episodes; leave out episodes_per_step"):
        tracker.advance()
    with pytest.raises(ValueError, match=r"episodes_per_step must be a whole .* got 0"):
        HorizonTracker(FixedHorizon(3), episodes_per_step=0)


def test_a_tracker_lowers_its_schedule_from_the_next_step_on():
    tracker = HorizonTracker(StagedHorizon([2, 4], [2]))
    for _ in range(5):
        tracker.advance()
    assert tracker.horizon == 4
    assert tracker.lower("collapse") is True
    horizons = []
    for _ in range(3):
        tracker.advance()
        horizons.append(tracker.horizon)
    assert horizons == [2, 2, 4]


def make_tracker():
    return HorizonTracker(AdaptiveHorizon([2, 4, 8], QUICK), episodes_per_step=5)


def test_a_tracker_goes_on_from_its_state_also_amid_a_step():
    tracker, horizons, resumed_horizons = make_tracker(), [], []
    resumed = make_tracker()
    for count in (3, 4, 1, 7, 2, 3, 6, 4):
        outcome = CUT._replace(horizon=tracker.horizon)
        state = json.loads(json.dumps(resumed.state_dict()))
        assert state == resumed.state_dict()
        resumed = make_tracker()
        resumed.load_state_dict(state)
        for each, seen in ((tracker, horizons), (resumed, resumed_horizons)):
            each.ended([outcome] * count)
            seen.append(each.horizon)
    assert resumed_horizons == horizons == [2, 2, 2, 4, 4, 4, 8, 8]
    assert resumed.state_dict() == tracker.state_dict()


def test_outcomes_of_the_present_step_come_back_as_they_were():
    outcome = EpisodeOutcome(EndReason.SUCCESS, True, 3, 7, 0.25)
    tracker, schedule = HorizonTracker(StagedHorizon([7], [])), Recorder([7], [])
    tracker.ended([outcome, CUT])
    resumed = HorizonTracker(schedule)
    resumed.load_state_dict(json.loads(json.dumps(tracker.state_dict())))
    resumed.advance()
    assert schedule.seen == [(0, [outcome, CUT])]
    assert schedule.seen[0][1][0].end_reason is EndReason.SUCCESS


@pytest.mark.parametrize(
    "state", [{}, {"step": -1, "outcomes": [], "schedule": {}}, {"step": 1, "outcomes": 3}]
)
def test_another_state_is_refused_and_changes_nothing(state):
    tracker = make_tracker()
    tracker.ended([CUT] * 7)
    before = tracker.state_dict()
    with pytest.raises(ValueError, match=r"state of a horizon tracker|step must be a whole number"):
        tracker.load_state_dict(state)
    with pytest.raises(ValueError, match="an adaptive horizon"):
        tracker.load_state_dict(before | {"schedule": {"delay": 3}})
    assert tracker.state_dict() == before


def test_no_episode_of_any_thread_is_lost():
    schedule = Recorder([2], [])
    tracker = HorizonTracker(schedule, episodes_per_step=7)
    threads = [
        threading.Thread(target=lambda: [tracker.ended([CUT]) for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert tracker.step == 2000 // 7
    assert [step for step, _ in schedule.seen] == list(range(2000 // 7))
    assert {len(outcomes) for _, outcomes in schedule.seen} == {7}


# ----------------------------------------------------------------------------------------- vectors


@pytest.mark.parametrize("workers", WORKERS)
def test_a_vector_is_reset_to_the_schedules_horizon_and_reports_its_ends(make_vector, workers):
    """What the caller does where workers cannot share a tracker; the same with all of them."""
    schedule = Recorder([2, 3], [1])
    tracker = HorizonTracker(schedule)
    envs = make_vector(num_envs=3, workers=workers)
    horizons = VectorHorizons(tracker, 3)
    envs.reset(options=horizons.options() | {"tasks": ["counting/train/9"] * 3})
    assert envs.get_attr("horizon") == (2, 2, 2)

    _, _, terminations, truncations, infos = envs.step(["done", "x", "add 9"])
    ended = terminations | truncations
    horizons.watch(infos, ended)
    tracker.advance()
    envs.reset(options=horizons.options(ended))
    assert envs.get_attr("horizon") == (3, 2, 2)

    _, _, terminations, truncations, infos = envs.step(["x", "add 0", "done"])
    horizons.watch(infos, terminations | truncations)
    tracker.advance()
    assert schedule.seen == [
        (0, [("failure", False, 1, 2, 0.0)]),
        (1, [("horizon", False, 2, 2, 1.0), ("success", True, 2, 2, 0.0)]),
    ]
    kinds = {type(value) for _, outcomes in schedule.seen for each in outcomes for value in each}
    assert kinds == {EndReason, bool, int, float}
    json.dumps(tracker.state_dict())


def test_invalid_replies_are_counted_anew_in_every_episode_of_a_vector():
    schedule = Recorder([2, 3], [9])
    tracker = HorizonTracker(schedule)
    horizons, ended = VectorHorizons(tracker, 1), np.array([True])
    for valid in (False, True):
        horizons.options(ended)
        info = {"turn": 1, "action_valid": valid, "end_reason": "failure", "success": False}
        horizons.watch({key: np.array([value]) for key, value in info.items()}, ended)
    tracker.advance()
    ((_, outcomes),) = schedule.seen
    assert [outcome.invalid for outcome in outcomes] == [1.0, 0.0]


def test_a_fault_in_a_vector_is_no_evidence(faulty):
    tracker = HorizonTracker(AdaptiveHorizon([2, 4], QUICK))
    envs, horizons = faulty(2), VectorHorizons(tracker, 2)
    envs.reset(options=horizons.options())
    _, _, terminations, truncations, infos = envs.step(["break", "add 1"])
    horizons.watch(infos, terminations | truncations)
    before = tracker.schedule.state_dict()
    tracker.advance()
    assert tracker.schedule.state_dict() == before | {"next_step": 1}


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_a_vector_that_resets_by_itself_is_refused(make_vector, mode):
    """Its episodes would have horizons of their own, and be counted as the schedule's."""
    tracker = HorizonTracker(FixedHorizon(1))
    envs, horizons = make_vector(num_envs=2, autoreset_mode=mode), VectorHorizons(tracker, 2)
    envs.reset(options=horizons.options())

    def play(steps):
        for _ in range(steps):
            _, _, terminations, truncations, infos = envs.step(["add 1", "add 1"])
            horizons.watch(infos, terminations | truncations)

    with pytest.raises(RuntimeError, match=r"at turn 0 after a step.*autoreset_mode='Disabled'"):
        play(2)


def test_a_mask_of_another_size_is_refused():
    horizons = VectorHorizons(HorizonTracker(FixedHorizon(3)), 3)
    with pytest.raises(IndexError):
        horizons.options(np.ones(4, dtype=np.bool_))
    with pytest.raises(ValueError, match="num_envs must be a whole number of at least 1, got 0"):
        VectorHorizons(HorizonTracker(FixedHorizon(3)), 0)
