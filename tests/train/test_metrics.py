"""Numbers of the log."""

from pathlib import Path

import pytest

from agentgym_envs.episodes import EndReason
from agentgym_envs.rollouts import num_repeats, summarize
from agentgym_train.loggers import Loggers
from agentgym_train.metrics import METRICS


def test_summary_of_two_groups_worked_by_hand(make_episode):
    won = make_episode([([1, 2], [3], 0.0), ([4], [5, 6], 1.0)], end_reason=EndReason.SUCCESS)
    won.success = True
    lost = make_episode([([1, 2], [3, 4, 5], 0.0)])
    lost.turns[0].action_valid = False
    lost.turns[0].finish_reason = "length"
    broken = make_episode([], end_reason=EndReason.FAULT)
    values = summarize([won, lost, lost, broken], group_size=2)
    assert values["rollout/success"] == pytest.approx(1 / 3)  # faults are not played episodes
    assert values["rollout/turns"] == pytest.approx(4 / 3)
    assert values["rollout/invalid"] == pytest.approx(2 / 4)
    assert values["rollout/cut"] == pytest.approx(2 / 4)
    assert values["rollout/reply_tokens"] == pytest.approx((1 + 2 + 3 + 3) / 4)
    assert values["rollout/episode_tokens"] == pytest.approx((6 + 5 + 5) / 3)
    assert values["rollout/useful"] == pytest.approx(2 / 3)
    assert values["rollout/unsolved"] == pytest.approx(1 / 3)  # of the group that lost and broke
    assert values["rollout/turns_success"] == pytest.approx(2)
    assert values["rollout/turns_failure"] == pytest.approx(1)
    assert values["rollout/reply_tokens_success"] == pytest.approx(3 / 2)
    assert values["rollout/reply_tokens_failure"] == pytest.approx(3)
    assert values["end/fault"] == pytest.approx(1 / 4)
    assert set(values) <= set(METRICS)


def test_a_number_of_episodes_that_are_not_there_is_absent(make_episode):
    lost = make_episode([([1], [2], 0.0)])
    values = summarize([lost, lost], group_size=2)
    assert "rollout/turns_failure" in values
    assert "rollout/turns_success" not in values
    assert "rollout/reply_tokens_success" not in values


def test_what_an_episode_that_broke_had_earned_makes_no_group_useful(make_episode):
    lost = make_episode([([1], [2], 0.0)])
    broken = make_episode([([1], [2], 0.5)], end_reason=EndReason.FAULT)
    assert summarize([lost, lost, lost, broken], group_size=4)["rollout/useful"] == 0
    only_broken = summarize([broken, broken, lost, lost], group_size=2)
    assert only_broken["rollout/unsolved"] == 1  # of the two that did not break


def test_returns_that_differ_by_rounding_agree(make_episode):
    first = make_episode([([1], [2], 0.1), ([1], [2], 0.2)])
    second = make_episode([([1], [2], 0.3)])
    assert first.return_ != second.return_
    assert summarize([first, second], group_size=2)["rollout/useful"] == 0


def test_a_group_solved_by_all_tells_nothing_but_is_solved(make_episode):
    won = make_episode([([1], [2], 1.0)], end_reason=EndReason.SUCCESS)
    values = summarize([won, won], group_size=2)
    assert values["rollout/useful"] == 0
    assert values["rollout/unsolved"] == 0


def episode_of(make_episode, first, *turns):
    """An episode of (reply, observation) turns."""
    episode = make_episode([([1], [2], 0.0)] * len(turns))
    episode.first_observation = first
    for turn, (reply, observation) in zip(episode.turns, turns, strict=True):
        turn.reply, turn.observation = reply, observation
    return episode


def test_a_reply_is_repeated_if_it_was_given_before_in_the_same_state(make_episode):
    there_and_back = [("left", "wall"), ("right", "door")]
    episode = episode_of(make_episode, "door", *there_and_back, *there_and_back, ("look", "door"))
    assert num_repeats(episode) == 2  # left at the door, right at the wall; a loop of two
    assert num_repeats(episode_of(make_episode, "a", ("go", "b"), ("go", "c"), ("go", "d"))) == 0
    assert num_repeats(episode_of(make_episode, "a", ("go", "a"), (" go\n", "a"), ("go", "a"))) == 2


def test_a_state_key_says_more_than_the_observation(make_episode):
    episode = episode_of(make_episode, "fog", ("go", "fog"), ("go", "fog"), ("go", "fog"))
    assert num_repeats(episode) == 2
    for key, turn in enumerate(episode.turns):
        turn.state_key = str(key % 2)
    assert num_repeats(episode) == 1


def test_repeats_are_a_share_of_the_turns_of_all_episodes_that_did_not_break(make_episode):
    circling = episode_of(make_episode, "a", ("go", "a"), ("go", "a"), ("go", "a"))
    broken = episode_of(make_episode, "a", ("go", "a"), ("go", "a"))
    broken.end_reason = EndReason.FAULT
    going = episode_of(make_episode, "a", ("go", "b"))
    assert summarize([circling, going, broken], 1)["rollout/repeats"] == pytest.approx(2 / 4)


def test_every_end_reason_has_its_share():
    named = {name.removeprefix("end/") for name in METRICS if name.startswith("end/")}
    assert named == {str(reason) for reason in EndReason if reason}


def test_every_metric_has_unit_meaning_and_a_format_that_works():
    for name, metric in METRICS.items():
        assert metric.unit, name
        assert metric.meaning, name
        assert bool(metric.label) == bool(metric.format), name
        assert f"{0.5:{metric.format}}", name


def test_the_docs_hold_the_table_as_it_is():
    page = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text(encoding="utf-8")
    rows = [f"| `{name}` | {each.unit} | {each.meaning} |" for name, each in METRICS.items()]
    table = page.partition("| name | unit | what |\n|---|---|---|\n")[2]
    assert table.splitlines() == rows


def test_a_metric_that_is_not_in_the_table_is_refused():
    with pytest.raises(KeyError, match="train/los"):
        Loggers([]).log(0, "grpo", {"train/los": 1.0})
