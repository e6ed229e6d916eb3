"""Which tasks and which horizon a step uses."""

import collections
import itertools
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from agentgym_envs.curricula import task_curriculum
from agentgym_envs.episodes import EndReason, Episode, Turn
from agentgym_envs.horizons import AdaptiveHorizon, AdaptiveRules, EpisodeOutcome
from agentgym_envs.tasks import ListSource, Task, TaskSet
from agentgym_train.curriculum import CurriculumConfig, HorizonConfig
from agentgym_train.errors import ConfigError

# ---------------------------------------------------------------------------------------- horizons


def test_staged_resumed_at_step_100_trains_101_to_200_at_20_turns():
    """Steps are counted from 0: the 101st is number 100."""
    config = HorizonConfig(schedule="staged", stages=(10, 20, 30), steps=(100,))
    resumed = config.build()
    resumed.load_state_dict(config.build().state_dict())
    assert {resumed.horizon(step) for step in range(100, 200)} == {20}
    assert resumed.horizon(99) == 10
    assert resumed.horizon(200) == 30
    assert resumed.horizon(10_000) == 30


def test_fixed_takes_one_number():
    assert HorizonConfig(schedule="fixed", stages=(8,)).build().horizon(1000) == 8
    with pytest.raises(ConfigError, match=r"horizon: .* one number of turns, got stages \[4, 8\]"):
        HorizonConfig(schedule="fixed", stages=(4, 8))


def test_adaptive_takes_its_rules():
    rules = AdaptiveRules(window=3, min_steps=9)
    schedule = HorizonConfig(schedule="adaptive", stages=(4, 8), adaptive=rules).build()
    assert isinstance(schedule, AdaptiveHorizon)
    assert (schedule.stages, schedule.rules) == ((4, 8), rules)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stages": (4, 6, 8), "steps": (1, 2, 3, 4)}, "3 stages need 2 or 3 lengths, got 4"),
        ({"stages": (0, 6), "steps": (5,)}, "a number of turns, at least 1; got 0"),
        ({"stages": (6, 4), "steps": (5,)}, r"stages must grow, but 4 .*did you mean \[4, 6\]"),
        ({"stages": (6, 4), "schedule": "adaptive"}, "stages must grow, but 4 comes after 6"),
        ({"stages": (6,), "schedule": "adaptive"}, r"at least two stages, got \[6\]"),
        (
            {"schedule": "adaptive", "adaptive": AdaptiveRules(window=11)},
            "min_steps = 20 and window = 11",
        ),
        ({"adaptive": AdaptiveRules(window=-1)}, "window must be .* at least 1, got -1"),
    ],
)
def test_horizons_that_cannot_be_are_refused_at_the_start(settings, message):
    with pytest.raises(ConfigError, match=f"horizon: .*{message}"):
        HorizonConfig(**settings)


SCHEDULES = {
    "fixed": HorizonConfig(schedule="fixed", stages=(8,)),
    "staged": HorizonConfig(schedule="staged", stages=(4, 6, 8), steps=(7, 9)),
    "adaptive": HorizonConfig(
        schedule="adaptive",
        stages=(4, 6, 8),
        adaptive=AdaptiveRules(window=2, min_steps=4, patience=2, max_drop=0.5),
    ),
}


def horizons_of(config, killed_before=()):
    """40 horizons, with a collapse seen from outside at step 20."""
    schedule, horizons = config.build(), []
    for step in range(40):
        if step in killed_before:
            state = json.loads(json.dumps(schedule.state_dict()))
            schedule = config.build()
            schedule.load_state_dict(state)
        horizons.append(schedule.horizon(step))
        success = random.Random(step).randrange(2, 5)
        outcomes = [EpisodeOutcome(EndReason.SUCCESS, True, 3, horizons[-1])] * success
        outcomes += [EpisodeOutcome(EndReason.HORIZON, False, horizons[-1], horizons[-1])] * 4
        schedule.observe(step, outcomes)
        if step == 20:
            schedule.lower(step, "collapse")
    return horizons


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_run_killed_before_any_step_goes_on_with_the_same_horizons(name):
    whole = horizons_of(SCHEDULES[name])
    assert len(set(whole)) == (1 if name == "fixed" else 3)
    for step in range(40):
        assert horizons_of(SCHEDULES[name], {step}) == whole
    assert horizons_of(SCHEDULES[name], range(40)) == whole


# ------------------------------------------------------------------------------------------- tasks


def task(n, *, category="c", difficulty=None):
    return Task("t", f"t/{n}", "train", "", category, None, 5, difficulty=difficulty)


def tasks(count, **fields):
    return TaskSet(ListSource([task(n, **fields) for n in range(count)]))


def played(of_task, success, reason=None):
    end = reason or (EndReason.SUCCESS if success else EndReason.HORIZON)
    turns = [Turn("a", "b", 0.0, 0.0, action_valid=True)]
    return Episode(of_task, 0, 5, "", "", turns, end, success)


def build(task_set, per_step=4, seed=3, **settings):
    return CurriculumConfig(**settings).build(task_set, per_step=per_step, seed=seed)


def ids(drawn):
    return [each.id for each in drawn]


MIXED = TaskSet(
    ListSource([task(n, category="abc"[n % 3], difficulty=1 + n * 7 % 10) for n in range(20)])
)
FAMILIES = TaskSet(
    ListSource(
        [
            Task(family, f"{family}/{n}", "train", "", "abc"[n % 3], None, 5, difficulty=1 + n % 5)
            for family, count in {"t": 12, "u": 8}.items()
            for n in range(count)
        ]
    )
)
ORDERS = {
    "uniform": {"order": "uniform"},
    "difficulty": {"order": "difficulty", "grow_steps": 10},
    "by category": {"order": "success_rate"},
    "by task": {"order": "success_rate", "by": "task"},
}


def drawn_in_a_run(settings, killed_before=()):
    """The tasks of 15 steps; every third needs two further rounds."""
    curriculum, drawn = build(MIXED, **settings), []
    for step in range(15):
        if step in killed_before:
            state = json.loads(json.dumps(curriculum.state_dict()))
            curriculum = build(MIXED, **settings)
            curriculum.load_state_dict(state)
        rounds = [curriculum.step(step, round) for round in range(3 if step % 3 == 0 else 1)]
        drawn += [ids(each) for each in rounds]
        rng = random.Random(step)
        curriculum.observe(
            step, [played(each, rng.random() < 0.6) for each in itertools.chain(*rounds)]
        )
    return drawn


@pytest.mark.parametrize("name", ORDERS)
def test_a_run_killed_before_any_step_goes_on_with_the_same_tasks(name):
    whole = drawn_in_a_run(ORDERS[name])
    for step in range(15):
        assert drawn_in_a_run(ORDERS[name], {step}) == whole
    assert drawn_in_a_run(ORDERS[name], range(15)) == whole
    assert drawn_in_a_run(ORDERS[name] | {"seed": 4}) != whole


@pytest.mark.parametrize("name", ORDERS)
def test_further_rounds_of_a_step_repeat_nothing_while_others_are_left(name):
    curriculum = build(MIXED, **ORDERS[name])
    for step in (0, 3, 11):
        first = ids(curriculum.step(step))
        rounds = [ids(curriculum.step(step, round)) for round in range(5)]
        assert rounds[0] == first
        assert sorted(itertools.chain(*rounds)) == sorted(MIXED.ids)
        assert ids(curriculum.step(step, 5)) == first
        assert [ids(curriculum.step(step, round)) for round in range(5)] == rounds


@pytest.mark.parametrize("name", ORDERS)
def test_more_tasks_a_step_than_there_are_is_refused(name):
    with pytest.raises(ConfigError, match="wants 21 different tasks, but the task set holds 20"):
        build(MIXED, per_step=21, **ORDERS[name])
    assert sorted(ids(build(MIXED, per_step=20, **ORDERS[name]).step(3))) == sorted(MIXED.ids)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grow_steps": 0}, r"curriculum\.grow_steps must be at least 1, got 0"),
        (
            {"order": "difficulty", "start_share": 0.0},
            r"curriculum\.start_share is a share above 0, up to 1; got 0\.0",
        ),
        ({"order": "success_rate", "floor": 1.5}, "curriculum.floor is a share above 0, .* got 1"),
        ({"order": "success_rate", "floor": math.nan}, "curriculum.floor is .* got nan"),
        ({"order": "uniform", "start_share": -1.0}, "curriculum.start_share is .* got -1"),
        ({"mix": {"u": 1.0}}, "unknown family of a mixture 'u'; valid are t"),
        ({"mix": {"t": 0.0}}, "weights of a mixture must be numbers above 0, got {'t': 0.0}"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        build(MIXED, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": "difficulty", "grow_step": 5}, "unknown setting .* 'grow_step'; did you mean"),
        ({"order": "difficulty", "grow_steps": 0}, "grow_steps must be .* at least 1, got 0"),
        ({"order": "success_rate", "by": "categories"}, "'categories'; did you mean 'category'"),
        ({"order": "uniform", "per_step": 0}, "per_step must be .* at least 1, got 0"),
        ({"order": "unifrom"}, "unknown order of tasks 'unifrom'; did you mean 'uniform'"),
    ],
)
def test_any_trainer_is_told_of_settings_that_cannot_be(settings, message):
    with pytest.raises(ValueError, match=message):
        task_curriculum(tasks=MIXED, **{"per_step": 4, "seed": 0} | settings)


def test_the_page_tells_the_defaults():
    page = (Path(__file__).parents[2] / "docs" / "curricula.md").read_text(encoding="utf-8")
    for name in ("start_share", "grow_steps", "floor"):
        assert f"`{name}` ({getattr(CurriculumConfig(), name)})" in page


# ----------------------------------------------------------------------------------------- uniform


def test_every_task_comes_once_before_any_comes_again():
    curriculum = build(tasks(10))
    drawn = list(itertools.chain(*(ids(curriculum.step(step)) for step in range(5))))
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == sorted(f"t/{n}" for n in range(10))
    assert drawn[:10] != drawn[10:]


def test_uniform_is_the_shuffles_of_the_epochs_one_after_the_other():
    curriculum = build(tasks(10), seed=7)
    epochs = [np.random.default_rng((7, epoch)).permutation(10) for epoch in range(4)]
    expected = [f"t/{n}" for n in np.concatenate(epochs)]
    assert list(itertools.chain(*(ids(curriculum.step(step)) for step in range(10)))) == expected


def test_the_tasks_of_a_step_depend_on_seed_and_step_alone():
    curriculum = build(tasks(10))
    forward = [ids(curriculum.step(step)) for step in range(6)]
    backward = [ids(curriculum.step(step)) for step in reversed(range(6))]
    assert forward == backward[::-1]
    other = build(tasks(10), seed=4)
    assert forward != [ids(other.step(step)) for step in range(6)]


def test_further_rounds_do_not_follow_the_epochs():
    """Else every refill would make the next step's tasks come twice."""
    curriculum = build(tasks(100))
    assert ids(curriculum.step(0, 1)) != ids(curriculum.step(1))


# -------------------------------------------------------------------------------------- difficulty


def ladder(count=20):
    """Tasks of difficulty 1, 2, 3, …, in another order."""
    levels = np.random.default_rng(0).permutation(count) + 1
    return TaskSet(ListSource([task(n, difficulty=int(d)) for n, d in enumerate(levels)]))


@pytest.mark.parametrize(
    ("step", "bound"), [(0, 5), (2, 8), (4, 11), (6, 14), (10, 20), (11, 20), (500, 20)]
)
def test_the_bound_rises_from_its_share_of_the_easiest_to_all_tasks(step, bound):
    """20 tasks: 25 % are 5; after 4 of 10 steps 25 + 75 * 0.4 = 55 % are 11."""
    seeds = range(200)
    curricula = (build(ladder(), 1, seed, order="difficulty", grow_steps=10) for seed in seeds)
    drawn = {curriculum.step(step)[0].difficulty for curriculum in curricula}
    assert drawn == set(range(1, bound + 1))


def test_within_the_bound_all_tasks_are_equally_likely():
    curriculum = build(ladder(), per_step=1, order="difficulty", start_share=0.2, grow_steps=10**9)
    drawn = collections.Counter(curriculum.step(step)[0].difficulty for step in range(2000))
    assert set(drawn) == {1, 2, 3, 4}
    assert max(abs(count - 500) for count in drawn.values()) < 4 * math.sqrt(2000 * 0.25 * 0.75)


def test_equally_difficult_tasks_come_in_together():
    same = TaskSet(ListSource([task(n, difficulty=1 + n // 5) for n in range(10)]))
    curriculum = build(same, per_step=1, order="difficulty", start_share=0.1)
    drawn = {curriculum.step(0, round)[0].id for round in range(5)}
    assert drawn == {f"t/{n}" for n in range(5)}
    firsts = {build(same, 1, seed, order="difficulty").step(0)[0].id for seed in range(60)}
    assert firsts == {f"t/{n}" for n in range(5)}


def test_a_step_that_wants_more_than_is_within_the_bound_takes_the_next_easiest():
    curriculum = build(ladder(), per_step=7, order="difficulty", start_share=0.1)
    assert [each.difficulty for each in curriculum.step(0)][2:] == [3, 4, 5, 6, 7]


def test_the_smallest_share_is_the_easiest_task():
    curricula = (
        build(ladder(), 1, seed, order="difficulty", start_share=0.01) for seed in range(9)
    )
    assert {curriculum.step(0)[0].difficulty for curriculum in curricula} == {1}


def test_tasks_without_difficulty_are_refused():
    some = TaskSet(ListSource([task(0, difficulty=3), task(1), task(2)]))
    with pytest.raises(ConfigError, match=r"2 of 3 have none, such as 't/1'; choose 'uniform'"):
        build(some, 1, order="difficulty")


# ------------------------------------------------------------------------------------ success rate


def two_each():
    """Two tasks in each of the categories a, b and c."""
    return TaskSet(ListSource([task(n, category="abc"[n % 3]) for n in range(6)]))


def test_a_draw_is_by_weight_each_time_without_replacement():
    """a: never played, rate 1/2, weight 1. b: 8 of 8, rate 9/10, weight 0.36. c: 0 of 38, rate
    1/40, weight 0.0975, so the floor of 0.2. The weights of the six tasks sum to 3.12.
    """
    curriculum = build(two_each(), per_step=2, order="success_rate", floor=0.2)
    _, b, c = two_each()[:3]
    curriculum.observe(0, [played(b, True)] * 8 + [played(c, False)] * 38)
    weight = dict(zip("abc", (1.0, 0.36, 0.2), strict=True))
    pairs = collections.Counter(
        "".join(each.category for each in curriculum.step(step)) for step in range(1, 20_001)
    )
    for first, second in itertools.product("abc", repeat=2):
        left = 3.12 - weight[first]
        share = 2 * weight[first] / 3.12 * (2 - (first == second)) * weight[second] / left
        error = math.sqrt(share * (1 - share) / 20_000)
        assert pairs[first + second] / 20_000 == pytest.approx(share, abs=4 * error)


def test_what_was_never_played_is_tried_before_what_always_or_never_succeeds():
    """Two tasks of weight 1 beside four at the floor of 0.01."""
    curriculum = build(two_each(), per_step=1, order="success_rate", by="task", floor=0.01)
    known = list(two_each())[:4]
    curriculum.observe(0, [played(each, n < 2) for n, each in enumerate(known)] * 500)
    drawn = collections.Counter(ids(curriculum.step(step))[0] for step in range(1, 1001))
    expected = 1000 * 2 / 2.04
    assert drawn["t/4"] + drawn["t/5"] == pytest.approx(expected, abs=4 * math.sqrt(20))


def test_nothing_starves():
    """The floor's share of one of ten tasks beside nine of weight 1: 0.1 / 9.1."""
    curriculum = build(tasks(10), per_step=1, order="success_rate", by="task", floor=0.1)
    curriculum.observe(0, [played(tasks(10)[0], False)] * 1000)
    count = sum(ids(curriculum.step(step)) == ["t/0"] for step in range(1, 10_001))
    assert count == pytest.approx(10_000 * 0.1 / 9.1, abs=4 * math.sqrt(110))


def test_the_past_fades():
    """1 of 4, then 2 of 4: 0.9 + 2 of 0.9 * 4 + 4; other categories keep what they had."""
    curriculum = build(two_each(), order="success_rate")
    a, b = two_each()[:2]
    curriculum.observe(0, [played(a, n == 0) for n in range(4)] + [played(b, True)] * 2)
    curriculum.observe(1, [played(a, True), played(a, False)] * 2)
    assert curriculum.state_dict() == {
        "t/a": [pytest.approx(2.9), pytest.approx(7.6)],
        "t/b": [2.0, 2.0],
    }


@pytest.mark.parametrize("reason", [EndReason.FAULT, EndReason.STOPPED])
def test_faults_are_no_failures(reason):
    curriculum = build(two_each(), order="success_rate")
    a = two_each()[0]
    curriculum.observe(0, [played(a, False, reason)] * 5)
    assert curriculum.state_dict() == {}
    curriculum.observe(1, [played(a, True), played(a, False, reason)])
    assert curriculum.state_dict() == {"t/a": [1.0, 1.0]}


def test_a_policy_that_ran_out_of_context_has_failed():
    curriculum = build(two_each(), order="success_rate")
    curriculum.observe(0, [played(two_each()[0], False, EndReason.CONTEXT)])
    assert curriculum.state_dict() == {"t/a": [0.0, 1.0]}


def test_the_state_does_not_change_with_what_was_given_out():
    curriculum = build(two_each(), order="success_rate")
    curriculum.observe(0, [played(two_each()[0], True)])
    state = curriculum.state_dict()
    other = build(two_each(), order="success_rate")
    other.load_state_dict(state)
    for each in (curriculum, other):
        each.observe(1, [played(two_each()[0], True)])
    assert state == {"t/a": [1.0, 1.0]}
    assert other.state_dict() == curriculum.state_dict()


def test_one_category_is_no_choice():
    with pytest.raises(ConfigError, match="all 5 tasks are 't/c'; let it go by 'task'"):
        build(tasks(5), order="success_rate")
    assert build(tasks(5), order="success_rate", by="task").step(0)


# ----------------------------------------------------------------------------------------- mixture


def test_every_step_plays_so_many_tasks_of_each_family():
    """Shares of 7 tasks: 3 / 5 is 4.2 and 2 / 5 is 2.8."""
    curriculum = build(FAMILIES, per_step=7, mix={"u": 2.0, "t": 3.0})
    for step in range(20):
        counts = collections.Counter(task.family for task in curriculum.step(step))
        assert counts == {"t": 4, "u": 3}


def test_each_family_of_a_mixture_has_its_own_curriculum():
    own = TaskSet(ListSource([task for task in FAMILIES if task.family == "u"]))
    for settings in ORDERS.values():
        mixed = build(FAMILIES, per_step=6, mix={"t": 1.0, "u": 1.0}, **settings)
        alone = build(own, per_step=3, **settings)
        for step in range(5):
            drawn = mixed.step(step)
            assert ids(drawn[3:]) == ids(alone.step(step))
            episodes = [played(each, each.category == "a") for each in drawn]
            mixed.observe(step, episodes)
            alone.observe(step, episodes[3:])
        state = json.loads(json.dumps(mixed.state_dict()))
        resumed = build(FAMILIES, per_step=6, mix={"t": 1.0, "u": 1.0}, **settings)
        resumed.load_state_dict(state)
        assert [ids(resumed.step(9, r)) for r in (0, 1)] == [ids(mixed.step(9, r)) for r in (0, 1)]


def test_families_without_a_weight_are_left_out():
    curriculum = build(FAMILIES, per_step=4, mix={"u": 1.0})
    assert {task.family for step in range(5) for task in curriculum.step(step)} == {"u"}


def test_a_weight_of_less_than_a_task_is_refused():
    with pytest.raises(ConfigError, match=r"weight of 'u' in .* less than one of 4 tasks"):
        build(FAMILIES, per_step=4, mix={"t": 9.0, "u": 1.0})
    with pytest.raises(ConfigError, match="wants 10 different tasks, but the task set holds 8"):
        build(FAMILIES, per_step=20, mix={"t": 1.0, "u": 1.0})
