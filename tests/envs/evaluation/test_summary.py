"""What episodes say: worked by hand."""

import json

import pytest
from toys import make_task

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation import EvalReport, summarize

TASKS = [make_task(0), make_task(1), make_task(2)]  # even, odd, even


@pytest.fixture
def episodes(make_episode):
    """Task 0 is solved at turns 2 and 5 of 4 tries, task 1 never, of task 2 one try broke."""
    return [
        make_episode(0, 2, True, member=0),
        make_episode(0, 8, member=1),
        make_episode(0, 5, True, member=2),
        make_episode(0, 8, member=3, score=0.5),
        *(make_episode(1, 8, member=member) for member in range(4)),
        make_episode(2, 1, True, member=0),
        make_episode(2, 3, member=1, end_reason=EndReason.FAULT, fault="gone"),
        make_episode(2, 8, True, member=2),
        make_episode(2, 4, member=3, end_reason=EndReason.FAILURE),
    ]


@pytest.fixture
def summary(episodes):
    return summarize(TASKS, episodes, horizon=8, k=4)


def test_success_is_the_mean_over_tasks_of_the_mean_over_their_episodes(summary):
    assert summary.success.value == pytest.approx((2 / 4 + 0 / 4 + 2 / 3) / 3)
    assert summary.score.value == pytest.approx((2.5 / 4 + 0 + 2 / 3) / 3)
    assert summary.success.tasks == 3


def test_faults_are_counted_and_no_results(summary):
    assert summary.faults == 1
    assert summary.end_reasons == {"failure": 1, "fault": 1, "horizon": 6, "success": 4}
    assert [task.episodes for task in summary.tasks] == [4, 4, 3]
    assert [task.faults for task in summary.tasks] == [0, 0, 1]


def test_the_grid_by_hand(summary):
    grid = summary.grid
    assert (grid.horizons, grid.ks) == ((1, 2, 4, 8), (1, 2, 4))
    values = [[cell.value for cell in row] for row in grid.cells]
    # Solved within 1, 2, 4, 8 turns: task 0 0, 1, 1, 2 of 4; task 1 none; task 2 1, 1, 1, 2 of 3.
    assert values[0] == pytest.approx([(0 + 0 + 1 / 3) / 3, (0 + 0 + 2 / 3) / 3, 0.0])
    assert values[1] == pytest.approx([(1 / 4 + 0 + 1 / 3) / 3, (1 / 2 + 0 + 2 / 3) / 3, 1 / 2])
    assert values[2] == values[1]
    assert values[3] == pytest.approx([(1 / 2 + 0 + 2 / 3) / 3, (5 / 6 + 0 + 1) / 3, 1 / 2])
    # pass@4 needs four episodes that did not break.
    assert [cell.tasks for cell in grid.cells[3]] == [3, 3, 2]
    assert values[3][0] == pytest.approx(summary.success.value)


def test_rows_and_columns_of_the_grid_can_be_chosen(episodes):
    grid = summarize(TASKS, episodes, horizon=8, k=4, horizons=[5, 3], ks=[3]).grid
    assert (grid.horizons, grid.ks) == ((3, 5, 8), (3, 4))
    with pytest.raises(InvalidEvaluation, match=r"horizon must be from 1 to 8, .* got \[9\]"):
        summarize(TASKS, episodes, horizon=8, k=4, horizons=[9])
    with pytest.raises(InvalidEvaluation, match=r"k must be from 1 to 4, .* got \[0, 2\]"):
        summarize(TASKS, episodes, horizon=8, k=4, ks=[0, 2])


def test_an_episode_that_failed_in_time_is_solved_at_no_horizon(make_episode):
    lost = make_episode(0, 2, end_reason=EndReason.FAILURE)
    grid = summarize(TASKS[:1], [lost], horizon=8, k=1).grid
    assert [row[0].value for row in grid.cells] == [0.0] * 4


def test_categories_are_those_of_the_tasks(summary):
    assert list(summary.categories) == ["even", "odd"]
    even = summary.categories["even"]
    assert even["success"].value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert (even["success"].tasks, summary.categories["odd"]["score"].value) == (2, 0.0)


def test_how_episodes_went(episodes):
    for turn in episodes[1].turns[:4]:
        turn.action_valid = False
    summary = summarize(TASKS, episodes, horizon=8, k=4)
    turns = [2, 8, 5, 8, 8, 8, 8, 8, 1, 8, 4]
    assert summary.turns["all"] == pytest.approx(sum(turns) / 11)
    assert summary.turns["solved"] == pytest.approx((2 + 5 + 1 + 8) / 4)
    assert summary.turns["unsolved"] == pytest.approx((8 + 8 + 8 * 4 + 4) / 7)
    assert summary.invalid == pytest.approx(4 / sum(turns))


def test_tokens_are_those_of_episodes_that_have_some(make_episode):
    with_tokens = make_episode(0, 2, True)
    for turn, context, sampled in zip(with_tokens.turns, (5, 3), (2, 4), strict=True):
        turn.context_ids, turn.sampled_ids = list(range(context)), list(range(sampled))
    tokens = summarize(TASKS[:2], [with_tokens, make_episode(1, 8)], horizon=8, k=1).tokens
    assert tokens == {"sampled": 6.0, "context": 8.0, "sampled_a_turn": 3.0}
    assert summarize(TASKS[:1], [make_episode(0, 8)], horizon=8, k=1).tokens == {}


def test_a_summary_is_json_whatever_the_order_of_the_episodes(episodes, summary):
    text = json.dumps(summary.to_json(), allow_nan=False)
    again = summarize(TASKS, reversed(episodes), horizon=8, k=4)
    assert json.dumps(again.to_json()) == text
    assert summary.to_json()["pass_at"]["2"] == summary.grid.cells[-1][1].to_json()


def test_an_evaluation_in_which_everything_broke_has_no_rates(make_episode):
    broken = make_episode(0, 0, end_reason=EndReason.FAULT)
    found = summarize(TASKS[:1], [broken], horizon=8, k=1).to_json()
    assert found["success"] == {"value": None, "interval_95": [0.0, 1.0], "tasks": 0}
    assert (found["invalid"], found["turns"]["all"], found["faults"]) == (None, None, 1)


def test_episodes_of_other_tasks_and_horizons_are_refused(make_episode):
    with pytest.raises(InvalidEvaluation, match="'toy/train/7', which is not one of the 3"):
        summarize(TASKS, [make_episode(7, 1)], horizon=8, k=1)
    with pytest.raises(InvalidEvaluation, match="with horizon 9, the evaluation's is 8"):
        summarize(TASKS, [make_episode(0, 1, horizon=9)], horizon=8, k=1)


def test_episodes_that_say_nothing_of_their_task_are_refused(make_episode):
    running = make_episode(0, 2, end_reason=EndReason.RUNNING)
    with pytest.raises(
        InvalidEvaluation, match="'toy/train/0' has not ended: it has no end reason"
    ):
        summarize(TASKS, [running], horizon=8, k=1)
    for score in (float("nan"), -0.1, 1.5):
        with pytest.raises(InvalidEvaluation, match=f"has the score {score}; .* from 0 to 1"):
            summarize(TASKS, [make_episode(0, 2, score=score)], horizon=8, k=1)


def test_more_episodes_than_were_asked_for_are_refused(make_episode):
    twice = [make_episode(1, 2), make_episode(1, 3)]
    with pytest.raises(InvalidEvaluation, match="2 episodes of task 'toy/train/1', but k is 1"):
        summarize(TASKS, twice, horizon=8, k=1)


def test_the_report_of_a_training_run_has_the_keys_that_its_readers_know(make_episode):
    sampled = [make_episode(0, 2, True), make_episode(1, 8)]
    greedy = [make_episode(0, 3, True), make_episode(1, 1, end_reason=EndReason.FAULT)]
    report = EvalReport.of(TASKS[:2], sampled, greedy, horizon=8)
    found = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert found | {"interval_95": None} == {
        "split": "train",
        "horizon": 8,
        "n": 2,
        "success": 0.5,
        "interval_95": None,
        "success_greedy": 1.0,
        "sampled": [1, 0],
        "greedy": [1, None],
        "categories": {"even": [1, 1.0], "odd": [1, 0.0]},
        "faults": 1,
    }
    metrics = report.metrics()
    assert metrics["eval/success_low"] <= metrics["eval/success"] <= metrics["eval/success_high"]
    assert (metrics["eval/success_greedy"], metrics["eval/episodes"]) == (1.0, 2.0)


def test_numbers_of_nothing_are_absent_from_the_log(make_episode):
    broken = [make_episode(0, 0, end_reason=EndReason.FAULT)]
    report = EvalReport.of(TASKS[:1], broken, broken, horizon=8)
    assert report.metrics() == {"eval/episodes": 0.0}
