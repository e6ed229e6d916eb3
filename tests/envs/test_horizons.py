import json

import pytest

from agentgym_envs.horizons import FixedHorizon, StagedHorizon


def test_a_fixed_horizon_is_the_same_at_every_step():
    assert [FixedHorizon(8).horizon(step) for step in (0, 1, 10**6)] == [8, 8, 8]


def test_a_staged_horizon_changes_after_exactly_so_many_steps():
    schedule = StagedHorizon([10, 20, 30], 100)
    expected = {0: 10, 99: 10, 100: 20, 199: 20, 200: 30, 299: 30, 300: 30, 10**6: 30}
    assert {step: schedule.horizon(step) for step in expected} == expected


def test_stages_may_differ_in_length_and_the_last_needs_none():
    schedule = StagedHorizon([5, 10, 15], [2, 3])
    assert [schedule.horizon(step) for step in range(7)] == [5, 5, 10, 10, 10, 15, 15]
    assert StagedHorizon([5, 10, 15], [2, 3, 9]).horizon(100) == 15
    assert repr(schedule) == "StagedHorizon(stages=[5, 10, 15], steps=[2, 3])"


def test_a_resumed_schedule_goes_on_where_it_was():
    state = json.loads(json.dumps(StagedHorizon([10, 20, 30], 100).state_dict()))
    resumed = StagedHorizon([10, 20, 30], 100)
    resumed.load_state_dict(state)
    assert {resumed.horizon(step) for step in range(100, 200)} == {20}


@pytest.mark.parametrize(
    ("stages", "steps", "message"),
    [
        ([], 5, "at least one stage"),
        ([0], 5, "at least 1 turn, got 0"),
        ([1, 2], 0, "at least 1 step"),
        ([1, 2, 3], [1], "2 or 3 lengths, got 1"),
    ],
)
def test_impossible_stages_are_refused(stages, steps, message):
    with pytest.raises(ValueError, match=message):
        StagedHorizon(stages, steps)


def test_steps_before_the_first_are_refused():
    with pytest.raises(ValueError, match="counted from 0, got -1"):
        StagedHorizon([1, 2], 3).horizon(-1)


def test_a_horizon_of_no_turn_is_refused():
    with pytest.raises(ValueError, match="at least 1 turn, got 0"):
        FixedHorizon(0)


def test_state_of_another_schedule_is_refused():
    with pytest.raises(ValueError, match=r"got state \['level'\]"):
        FixedHorizon(3).load_state_dict({"level": 2})


@pytest.mark.parametrize("turns", [2.5, "3", True])
def test_a_horizon_is_a_whole_number(turns):
    with pytest.raises(ValueError, match=f"whole number, at least 1 turn, got {turns!r}"):
        FixedHorizon(turns)
    with pytest.raises(ValueError, match=f"whole number, at least 1 turn, got {turns!r}"):
        StagedHorizon([1, turns], 5)
