"""When an adaptive horizon moves: worked by hand, and against a second implementation."""

import dataclasses
import json
import random

import pytest

from agentgym_envs.episodes import EndReason
from agentgym_envs.horizons import AdaptiveHorizon, AdaptiveRules, EpisodeOutcome

QUICK = AdaptiveRules(
    window=2,
    min_steps=4,
    patience=2,
    raise_share=0.3,
    min_gain=0.1,
    max_drop=0.2,
    max_invalid_rise=0.25,
    max_invalid=0.5,
)
STAGES = [5, 10, 20]


def played(horizon, *, solved=0, failed=0, cut=0, invalid=0.0):
    """Outcomes of episodes with that horizon."""
    counts = {"success": solved, "failure": failed, "horizon": cut}
    return [
        EpisodeOutcome(EndReason(reason), reason == "success", 4, horizon, invalid)
        for reason, count in counts.items()
        for _ in range(count)
    ]


def feed(schedule, steps, **outcomes):
    """Observe so many more steps with the same outcomes; the horizon of each."""
    horizons = []
    for _ in range(steps):
        step = schedule.state_dict()["next_step"]
        horizons.append(schedule.horizon(step))
        schedule.observe(step, played(horizons[-1], **outcomes))
    return horizons


def test_it_is_raised_when_many_end_by_the_horizon_and_success_stands_still():
    """Two windows are full after step 3; the sign holds at steps 3 and 4; step 5 is longer."""
    schedule = AdaptiveHorizon(STAGES, QUICK)
    horizons = feed(schedule, 16, solved=3, failed=3, cut=4)
    assert horizons == [5] * 5 + [10] * 5 + [20] * 6
    reason = "40% end by the horizon and success stays at 30%"
    assert schedule.changes == [(5, 10, reason), (10, 20, reason)]


def test_a_stage_lasts_at_least_so_many_steps():
    schedule = AdaptiveHorizon(STAGES, dataclasses.replace(QUICK, min_steps=8))
    assert feed(schedule, 10, solved=3, failed=3, cut=4) == [5] * 8 + [10] * 2


def test_it_is_not_raised_when_few_end_by_the_horizon():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    assert feed(schedule, 20, solved=5, failed=3, cut=2) == [5] * 20
    assert feed(schedule, 4, solved=5, failed=2, cut=3) == [5, 5, 5, 10]


def test_it_is_not_raised_while_success_of_those_that_end_otherwise_grows():
    """1/8, 2/8, … of those that end by themselves, so a window has 2/8 more than the one before.
    From step 9 on the gain is 1/16 and then nothing.
    """
    schedule = AdaptiveHorizon(STAGES, QUICK)
    for solved in range(1, 9):
        assert feed(schedule, 1, solved=solved, failed=8 - solved, cut=8) == [5]
    assert feed(schedule, 6, solved=8, cut=8) == [5] * 3 + [10] * 3
    assert schedule.changes[0].step == 11


def test_it_is_not_raised_while_more_and_more_end_by_success_before_the_horizon():
    """The world ends by success alone, so success of those that end otherwise is always 1."""
    schedule = AdaptiveHorizon(STAGES, QUICK)
    for solved in range(1, 7):
        assert feed(schedule, 1, solved=solved, cut=10 - solved) == [5]
    assert feed(schedule, 6, solved=6, cut=4) == [5] * 3 + [10] * 3


def test_it_is_raised_when_every_episode_ends_by_the_horizon():
    assert feed(AdaptiveHorizon(STAGES, QUICK), 6, cut=8) == [5] * 5 + [10]


@pytest.mark.parametrize(("gain", "expected"), [(7, 10), (8, 5)])
def test_success_has_stopped_growing_below_exactly_the_least_gain(gain, expected):
    """Windows of 32 episodes, 8 solved and then so many more; 8 of 32 are a quarter."""
    rules = dataclasses.replace(QUICK, patience=1, min_gain=0.25)
    schedule = AdaptiveHorizon(STAGES, rules)
    feed(schedule, 3, solved=4, cut=12)
    feed(schedule, 1, solved=4 + gain, cut=12 - gain)
    assert schedule.horizon(4) == expected


def test_the_last_stage_is_never_left_upwards():
    schedule = AdaptiveHorizon([5, 10], QUICK)
    assert feed(schedule, 40, cut=8)[-1] == 10
    assert len(schedule.changes) == 1


def at_second_stage(rules=QUICK):
    schedule = AdaptiveHorizon(STAGES, rules)
    feed(schedule, 5, solved=3, failed=3, cut=4)
    assert schedule.horizon(5) == 10
    return schedule


def test_it_is_lowered_when_success_falls_far_below_its_best_at_this_horizon():
    """Best 60 %; then windows of 45 % and twice 30 %, which is 30 points below."""
    schedule = at_second_stage()
    feed(schedule, 3, solved=6, failed=4)
    assert feed(schedule, 4, solved=3, failed=7) == [10] * 3 + [5]
    assert schedule.changes[-1] == (11, 5, "success fell from 60% to 30%")


def test_a_fall_that_does_not_last_lowers_nothing():
    schedule = at_second_stage()
    feed(schedule, 3, solved=6, failed=4)
    for _ in range(5):  # every other window is 15 points below the best
        feed(schedule, 1, solved=3, failed=7)
        feed(schedule, 1, solved=6, failed=4)
    feed(schedule, 2, solved=3, failed=7)  # one window 30 points below
    feed(schedule, 4, solved=6, failed=4)
    assert schedule.horizon(99) == 10


def test_success_at_another_horizon_is_no_measure():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    feed(schedule, 5, solved=7, cut=3)
    assert schedule.horizon(5) == 10
    assert feed(schedule, 10, solved=1, failed=9) == [10] * 10


def test_it_is_lowered_when_the_invalid_share_rises_far_above_its_least():
    """Least 25 %; then windows of 37.5 % and twice 50 %, which is 25 points above."""
    schedule = at_second_stage()
    feed(schedule, 2, solved=5, failed=5, invalid=0.25)
    assert feed(schedule, 4, solved=5, failed=5, invalid=0.5) == [10] * 3 + [5]
    assert schedule.changes[-1] == (10, 5, "invalid turns rose from 25% to 50%")


def test_it_is_not_raised_while_most_replies_are_invalid():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    assert feed(schedule, 20, cut=8, invalid=0.75) == [5] * 20
    assert feed(schedule, 4, cut=8, invalid=0.5) == [5] * 3 + [10]


def test_the_invalid_share_is_one_of_turns_not_of_episodes():
    schedule = at_second_stage()
    feed(schedule, 2, solved=5, failed=5)
    short = [EpisodeOutcome(EndReason.FAILURE, False, 1, 10, 1.0)] * 3
    long = [EpisodeOutcome(EndReason.SUCCESS, True, 10, 10, 0.0)] * 3
    for step in range(7, 12):  # 3 of 33 turns, though half of the episodes
        schedule.observe(step, short + long)
    assert schedule.horizon(12) == 10


def test_the_lowest_stage_is_never_left_downwards():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    feed(schedule, 4, solved=9, failed=1)
    assert feed(schedule, 20, failed=9, cut=1) == [5] * 20
    assert schedule.changes == []


def test_at_the_lowest_stage_a_collapse_makes_a_new_measure_of_what_is_best():
    """Tasks may have become harder: 20 points below forever must not bar the way up for ever."""
    schedule = AdaptiveHorizon(STAGES, QUICK)
    feed(schedule, 4, solved=9, cut=1)
    horizons = feed(schedule, 9, solved=5, cut=5)  # collapse at steps 4 and 5, the stage anew
    assert horizons == [5] * 7 + [10] * 2


def test_faults_and_episodes_of_another_horizon_count_for_nothing():
    schedule, plain = (AdaptiveHorizon(STAGES, QUICK) for _ in range(2))
    noise = [
        *played(10, solved=50),
        EpisodeOutcome(EndReason.FAULT, False, 3, 5, 1.0),
        EpisodeOutcome(EndReason.STOPPED, False, 3, 5, 1.0),
    ]
    for step in range(4):
        schedule.observe(step, noise + played(5, solved=3, failed=3, cut=4))
        plain.observe(step, played(5, solved=3, failed=3, cut=4))
        assert schedule.state_dict() == plain.state_dict()


def test_a_step_without_evidence_is_no_step_of_the_stage():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    for step in range(20):
        evidence = played(5, solved=3, failed=3, cut=4) if step % 5 == 0 else []
        schedule.observe(step, evidence)
    assert schedule.horizon(20) == 5
    schedule.observe(20, played(5, solved=3, failed=3, cut=4))  # the fifth with evidence
    assert schedule.horizon(21) == 10


def test_from_outside_it_is_lowered_at_once_and_begins_anew():
    schedule = at_second_stage()
    feed(schedule, 4, cut=8)  # one sign more would raise it
    assert schedule.lower(8, "entropy is gone") is True
    assert schedule.changes[-1] == (9, 5, "entropy is gone")
    assert feed(schedule, 6, cut=8) == [5] * 5 + [10]
    lowest = AdaptiveHorizon(STAGES, QUICK)
    feed(lowest, 4, cut=8)
    assert lowest.lower(3, "entropy is gone") is False
    assert lowest.changes == []
    assert feed(lowest, 6, cut=8) == [5] * 5 + [10]


def test_a_step_is_observed_once_and_in_order():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    schedule.observe(7, [])
    for step in (7, 3):
        with pytest.raises(ValueError, match=f"step {step} has been observed.* expected 8 or late"):
            schedule.observe(step, [])
    resumed = AdaptiveHorizon(STAGES, QUICK)
    resumed.load_state_dict(schedule.state_dict())
    with pytest.raises(ValueError, match=r"step 7 has been observed"):
        resumed.observe(7, [])
    schedule.observe(9, [])


# --------------------------------------------------------------------------------- by brute force


class Reference:
    """The rules of the module's docstring, from whole logs and without a state of windows."""

    def __init__(self, stages, rules):
        self.stages, self.rules, self.stage, self.log = stages, rules, 0, []

    def verdicts(self, length):
        """Whether the log up to `length` steps is a sign of collapse, and of a plateau."""
        window = self.rules.window

        def rates(first, last):
            episodes = [each for step in self.log[first:last] for each in step]
            success = sum(each.success for each in episodes)
            at_horizon = [each for each in episodes if each.end_reason == "horizon"]
            rest = len(episodes) - len(at_horizon)
            turns = sum(each.turns for each in episodes)
            return (
                success / len(episodes),
                success / rest if rest else 0.0,
                len(at_horizon) / len(episodes),
                sum(each.invalid * each.turns for each in episodes) / turns,
            )

        if length < window:
            return False, False
        success, otherwise, share, invalid = rates(length - window, length)
        windows = [rates(end - window, end) for end in range(window, length + 1)]
        best, least = max(each[0] for each in windows), min(each[3] for each in windows)
        if invalid - least >= self.rules.max_invalid_rise or best - success >= self.rules.max_drop:
            return True, False
        if length < 2 * window:
            return False, False
        success_before, otherwise_before, _, _ = rates(length - 2 * window, length - window)
        grew = (
            success - success_before >= self.rules.min_gain
            or otherwise - otherwise_before >= self.rules.min_gain
        )
        spoken = invalid <= self.rules.max_invalid
        return False, share >= self.rules.raise_share and spoken and not grew

    def observe(self, outcomes):
        horizon = self.stages[self.stage]
        kept = [
            each
            for each in outcomes
            if each.horizon == horizon and each.end_reason not in ("fault", "stopped")
        ]
        if not kept:
            return
        self.log.append(kept)
        newest = range(max(len(self.log) - self.rules.patience, 0) + 1, len(self.log) + 1)
        signs = [self.verdicts(length) for length in newest]
        whole = len(signs) == self.rules.patience
        if whole and all(collapse for collapse, _ in signs):
            self.stage, self.log = max(self.stage - 1, 0), []
        elif (
            whole
            and all(plateau for _, plateau in signs)
            and len(self.log) >= self.rules.min_steps
            and self.stage < len(self.stages) - 1
        ):
            self.stage, self.log = self.stage + 1, []


def random_outcomes(rng, horizon, skill):
    """Episodes of a policy whose skill, 0..1, drifts; now and then a fault or a stale episode."""
    outcomes = []
    for _ in range(rng.randrange(0, 9)):
        reason = rng.choices(
            ["success", "failure", "horizon", "fault", "budget"],
            [4 * skill, 1 - skill, 2 - skill, 0.2, 0.1],
        )[0]
        given = horizon if rng.random() < 0.9 else horizon + 5
        invalid = rng.randrange(5) / 4 if skill < 0.4 else 0.0
        outcomes.append(
            EpisodeOutcome(
                EndReason(reason), reason == "success", rng.randrange(1, 9), given, invalid
            )
        )
    return outcomes


@pytest.mark.parametrize("seed", range(40))
def test_it_moves_as_a_second_implementation_does_and_resumes_exactly_anywhere(seed):
    rng = random.Random(seed)
    window = rng.randrange(1, 4)
    rules = AdaptiveRules(
        window=window,
        min_steps=2 * window + rng.randrange(4),
        patience=rng.randrange(1, 4),
        raise_share=0.2,
        min_gain=0.05,
        max_drop=0.25,
        max_invalid_rise=0.3,
        max_invalid=0.5,
    )
    schedule, reference = AdaptiveHorizon(STAGES, rules), Reference(STAGES, rules)
    skill = 0.5
    for step in range(200):
        horizon = schedule.horizon(step)
        assert horizon == STAGES[reference.stage], step
        skill = min(max(skill + rng.uniform(-0.1, 0.1), 0.0), 1.0)
        outcomes = random_outcomes(rng, horizon, skill)
        if rng.random() < 0.5:  # killed before this step
            state = json.loads(json.dumps(schedule.state_dict()))
            assert state == schedule.state_dict()
            schedule = AdaptiveHorizon(STAGES, rules)
            schedule.load_state_dict(state)
        schedule.observe(step, outcomes)
        reference.observe(outcomes)


def test_random_runs_move_both_ways():
    """What the comparison above is worth."""
    rng, moves = random.Random(0), set()
    schedule, skill = AdaptiveHorizon(STAGES, QUICK), 0.5
    for step in range(2000):
        skill = min(max(skill + rng.uniform(-0.1, 0.1), 0.0), 1.0)
        schedule.observe(step, random_outcomes(rng, schedule.horizon(step), skill))
    for before, after in zip(schedule.changes, schedule.changes[1:], strict=False):
        moves.add((before.horizon, after.horizon))
    assert moves == {(5, 10), (10, 5), (10, 20), (20, 10)}
    kinds = {" ".join(change.reason.split()[:2]) for change in schedule.changes}
    assert {"success fell", "invalid turns"} < kinds


def test_with_32_episodes_a_step_a_policy_that_stands_still_is_never_lowered():
    """The default rules against noise alone: half solved, a tenth failed, the rest cut."""
    for seed in range(20):
        rng, schedule = random.Random(seed), AdaptiveHorizon(STAGES)
        for step in range(400):
            reasons = rng.choices(["success", "failure", "horizon"], [5, 1, 4], k=32)
            horizon = schedule.horizon(step)
            schedule.observe(
                step,
                [
                    EpisodeOutcome(EndReason(each), each == "success", 3, horizon)
                    for each in reasons
                ],
            )
        assert [change.horizon for change in schedule.changes] == [10, 20]
        assert 20 <= schedule.changes[0].step <= 60


def test_the_state_does_not_change_with_what_was_given_out():
    schedule = AdaptiveHorizon(STAGES, QUICK)
    feed(schedule, 3, solved=3, cut=5)
    state = schedule.state_dict()
    before = json.dumps(state)
    feed(schedule, 9, solved=3, cut=5)
    assert json.dumps(state) == before


@pytest.mark.parametrize(
    "change",
    [{"horizon": 7}, {"seen": {"steps": 3, "level": 2}}, {"changes": [[1]]}, {"next_step": None}],
)
def test_a_state_of_another_schedule_is_refused_and_changes_nothing(change):
    schedule = at_second_stage()
    before = schedule.state_dict()
    with pytest.raises(ValueError, match=r"an adaptive horizon with stages \[5, 10, 20\]"):
        schedule.load_state_dict(before | change)
    with pytest.raises(ValueError, match="an adaptive horizon with stages"):
        schedule.load_state_dict({})
    assert schedule.state_dict() == before


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"patience": 1.5}, r"patience must be a whole number of at least 1, got 1\.5"),
        ({"min_steps": 19}, "two windows, got min_steps = 19 and window = 10; raise min_steps"),
        ({"raise_share": 1.5}, r"raise_share is a share above 0, up to 1; got 1\.5"),
        ({"max_drop": 0.0}, r"max_drop is a share above 0, up to 1; got 0\.0"),
        ({"min_gain": float("nan")}, "min_gain must be a finite number"),
        ({"max_invalid": "half"}, "max_invalid must be a finite number, got 'half'"),
    ],
)
def test_rules_that_cannot_be_kept_are_refused(rules, message):
    with pytest.raises(ValueError, match=message):
        AdaptiveHorizon(STAGES, AdaptiveRules(**rules))


def test_one_stage_is_no_choice():
    with pytest.raises(ValueError, match=r"at least two stages, got \[5\]; add a longer one"):
        AdaptiveHorizon([5])
