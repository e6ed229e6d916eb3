"""Fixed and staged schedules, outcomes of episodes, and schedules by name."""

import json

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv

from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.errors import UnknownName
from agentgym_envs.horizons import (
    AdaptiveHorizon,
    EpisodeOutcome,
    FixedHorizon,
    StagedHorizon,
    horizon_schedule,
)
from agentgym_envs.policies import ScriptedPolicy, run_episode

SPAN = {0: 10, 99: 10, 100: 20, 199: 20, 200: 30, 299: 30, 300: 30, 10**6: 30}


def test_a_fixed_horizon_is_the_same_at_every_step():
    assert [FixedHorizon(8).horizon(step) for step in (0, 1, 10**6)] == [8, 8, 8]


def test_a_fixed_horizon_cannot_be_lowered():
    schedule = FixedHorizon(8)
    assert schedule.lower(3, "collapse") is False
    assert schedule.horizon(4) == 8


def test_a_staged_horizon_changes_after_exactly_so_many_steps():
    schedule = StagedHorizon([10, 20, 30], 100)
    assert {step: schedule.horizon(step) for step in SPAN} == SPAN


def test_stages_may_differ_in_length_and_the_last_needs_none():
    schedule = StagedHorizon([5, 10, 15], [2, 3])
    assert [schedule.horizon(step) for step in range(7)] == [5, 5, 10, 10, 10, 15, 15]
    assert StagedHorizon([5, 10, 15], [2, 3, 9]).horizon(100) == 15
    assert repr(schedule) == "StagedHorizon(stages=[5, 10, 15], steps=[2, 3])"


def test_what_happens_does_not_move_a_staged_horizon():
    schedule = StagedHorizon([10, 20, 30], 100)
    for step in range(300):
        schedule.observe(step, [EpisodeOutcome(EndReason.HORIZON, False, 10, 10)])
    assert {step: schedule.horizon(step) for step in SPAN} == SPAN


def test_resumed_at_step_100_the_stages_10_20_30_go_on_with_20_turns():
    state = json.loads(json.dumps(StagedHorizon([10, 20, 30], 100).state_dict()))
    resumed = StagedHorizon([10, 20, 30], 100)
    resumed.load_state_dict(state)
    assert {resumed.horizon(step) for step in range(100, 200)} == {20}


def test_a_lowered_staged_horizon_begins_the_stage_below_and_the_rest_comes_later():
    schedule = StagedHorizon([5, 10, 15], [2, 3])
    assert schedule.lower(6, "collapse") is True  # step 6 had 15 turns
    assert [schedule.horizon(step) for step in range(7, 13)] == [10, 10, 10, 15, 15, 15]
    assert schedule.lower(8, "again") is True  # 10 turns
    assert [schedule.horizon(step) for step in range(9, 16)] == [5, 5, 10, 10, 10, 15, 15]


def test_at_its_lowest_stage_a_staged_horizon_begins_that_one_anew():
    schedule = StagedHorizon([5, 10], [3])
    assert schedule.lower(2, "collapse") is False
    assert [schedule.horizon(step) for step in range(3, 8)] == [5, 5, 5, 10, 10]


def test_a_staged_horizon_logs_from_which_step_it_is_lower(caplog):
    with caplog.at_level("INFO"):
        StagedHorizon([5, 10, 15], [2, 3]).lower(6, "collapse")
    assert caplog.messages == ["from step 7 on 10 turns: collapse"]


def test_a_stage_may_last_one_step():
    schedule = StagedHorizon([5, 10, 15], [1, 1])
    assert [schedule.horizon(step) for step in range(4)] == [5, 10, 15, 15]


def test_a_lowered_staged_horizon_goes_on_from_its_state():
    schedule = StagedHorizon([5, 10, 15], [2, 3])
    schedule.lower(6, "collapse")
    state = json.loads(json.dumps(schedule.state_dict()))
    assert state == {"delay": 5}
    resumed = StagedHorizon([5, 10, 15], [2, 3])
    resumed.load_state_dict(state)
    steps = range(7, 20)
    assert list(map(resumed.horizon, steps)) == list(map(schedule.horizon, steps))


@pytest.mark.parametrize(
    ("stages", "steps", "message"),
    [
        ([], 5, "at least one stage"),
        ([0], 5, "number of turns, at least 1; got 0"),
        ([1, 2], 0, "a stage lasts must be a whole number of at least 1, got 0"),
        ([1, 2], [1.5], "a stage lasts must be a whole number of at least 1, got 1.5"),
        ([1, 2, 3], [1], "2 or 3 lengths, got 1"),
    ],
)
def test_impossible_stages_are_refused(stages, steps, message):
    with pytest.raises(ValueError, match=message):
        StagedHorizon(stages, steps)


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([10, 20, 15], r"15 comes after 20 in \[10, 20, 15\]; did you mean \[10, 15, 20\]\?"),
        ([10, 10, 20], r"10 comes after 10 in \[10, 10, 20\]; did you mean \[10, 20\]\?"),
    ],
)
def test_stages_that_shrink_or_repeat_are_refused(stages, message):
    for make in (lambda: StagedHorizon(stages, 5), lambda: AdaptiveHorizon(stages)):
        with pytest.raises(ValueError, match=f"stages must grow, but {message}"):
            make()


def test_steps_before_the_first_are_refused():
    for schedule in (StagedHorizon([1, 2], 3), AdaptiveHorizon([1, 2])):
        with pytest.raises(ValueError, match="counted from 0, got -1"):
            schedule.horizon(-1)


def test_stages_may_be_numbers_of_numpy():
    schedule = StagedHorizon(np.array([5, 10]), np.int64(2))
    assert [schedule.horizon(step) for step in range(3)] == [5, 5, 10]
    assert {type(schedule.horizon(step)) for step in (0, 2)} == {int}  # JSON knows no others
    assert AdaptiveHorizon(np.array([5, 10])).state_dict()["horizon"] == 5


def test_a_horizon_of_no_turn_is_refused():
    with pytest.raises(ValueError, match="at least 1; got 0"):
        FixedHorizon(0)


def test_state_of_another_schedule_is_refused():
    with pytest.raises(ValueError, match=r"no state, got \['level'\]"):
        FixedHorizon(3).load_state_dict({"level": 2})
    for state in ({}, {"delay": "2"}, {"delay": 2, "level": 1}):
        with pytest.raises(ValueError, match="state of a staged horizon is its delay"):
            StagedHorizon([1, 2], 3).load_state_dict(state)


@pytest.mark.parametrize("turns", [2.5, "3", True])
def test_a_horizon_is_a_whole_number(turns):
    with pytest.raises(ValueError, match=f"number of turns, at least 1; got {turns!r}"):
        FixedHorizon(turns)
    with pytest.raises(ValueError, match=f"number of turns, at least 1; got {turns!r}"):
        StagedHorizon([1, turns], 5)


# ---------------------------------------------------------------------------------------- by name


def test_schedules_have_names():
    assert horizon_schedule("fixed", [8]) == FixedHorizon(8)
    staged = horizon_schedule("staged", [5, 10, 15], steps=[2])
    assert [staged.horizon(step) for step in range(5)] == [5, 5, 10, 10, 15]
    assert isinstance(horizon_schedule("adaptive", [5, 10]), AdaptiveHorizon)


def test_a_name_or_stages_that_do_not_fit_it_are_refused():
    with pytest.raises(UnknownName, match="unknown horizon schedule 'adaptiv'; did you mean 'ad"):
        horizon_schedule("adaptiv", [5, 10])
    with pytest.raises(ValueError, match=r"one number of turns, got stages \[5, 10\]; give one"):
        horizon_schedule("fixed", [5, 10])


# --------------------------------------------------------------------------------------- outcomes


def test_a_record_tells_its_outcome():
    env = CountingEnv()
    task = "counting/train/9"
    replies = ["add 4", "nonsense", "add 0", "add 5", "done"]
    solved = run_episode(env, ScriptedPolicy(replies), task=task, horizon=7)
    assert EpisodeOutcome.from_episode(solved) == ("success", True, 5, 7, 2 / 5)
    cut = run_episode(env, ScriptedPolicy(["roll"]), task=task, horizon=2)
    assert EpisodeOutcome.from_episode(cut) == ("horizon", False, 2, 2, 0.0)
    wrong = run_episode(env, ScriptedPolicy(["nonsense"]), task=task, horizon=1)
    assert EpisodeOutcome.from_episode(wrong) == ("horizon", False, 1, 1, 1.0)


def test_an_episode_that_never_began_has_no_invalid_turns():
    episode = Episode(CountingEnv().tasks[0], 0, 5, "", "", end_reason=EndReason.FAULT)
    assert EpisodeOutcome.from_episode(episode) == ("fault", False, 0, 5, 0.0)


def test_the_last_info_tells_the_outcome():
    env = CountingEnv()
    env.reset(options={"task": "counting/train/9"})
    for reply in ("nonsense", "add 0", "add 4", "done"):
        *_, info = env.step(reply)
    found = EpisodeOutcome.from_info(info, horizon=6, num_invalid=2)
    assert found == ("failure", False, 4, 6, 1 / 2)
    assert EpisodeOutcome.from_info(info, horizon=6).invalid == 0.0
    assert EpisodeOutcome(EndReason.FAILURE, False, 4, 6).invalid == 0.0


def test_an_end_without_a_reason_is_the_horizon():
    env = gymnasium.wrappers.TimeLimit(CountingEnv(), 1)
    env.reset()
    *_, info = env.step("add 1")
    found = EpisodeOutcome.from_info(info, horizon=6, num_invalid=1)
    assert found == (EndReason.HORIZON, False, 1, 6, 1.0)


@pytest.mark.parametrize("reason", EndReason)
def test_what_broke_or_was_stopped_says_nothing_about_the_policy(reason):
    silent = {"", "fault", "stopped"}
    assert EpisodeOutcome(reason, False, 3, 5).is_evidence is (reason not in silent)


def test_turns_with_no_valid_action_are_counted_by_validity_not_by_reason():
    turns = [Turn("a", "b", 0.0, 0.0, action_valid=n > 0) for n in range(4)]
    episode = Episode(CountingEnv().tasks[0], 0, 5, "", "", turns, EndReason.CONTEXT)
    assert EpisodeOutcome.from_episode(episode) == ("context", False, 4, 5, 0.25)
