import json

import pytest
from toys import make_task

from agentgym_envs.episodes import EndReason, Episode, Turn, read_episodes, write_episodes
from agentgym_envs.errors import InvalidRecord


@pytest.fixture
def episode() -> Episode:
    return Episode(
        task=make_task(3),
        seed=7,
        horizon=5,
        instructions="Count.",
        first_observation="0\u2028",
        turns=[
            Turn("add 1", "1", 0.25, 0.25, True, [1, 2, 3], [4, 5], [-0.5, -1.5], "stop", 2),
            Turn("ünknown 😀\n", "what?", 0.0, 0.25, False, [6], [7, 8, 9], [-1, -2, -3], "length"),
            Turn("done", "right", 0.75, 1.0, True, [], [10], [-0.1], "stop", 3),
        ],
        end_reason=EndReason.SUCCESS,
        success=True,
        tail_ids=[11],
        versions={"agentgym-suite": "0.1.0"},
    )


def test_everything_else_follows_from_the_turns(episode):
    assert episode.return_ == 1.0
    assert episode.score == 1.0
    assert episode.has_tokens
    assert episode.token_ids == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]
    assert [int(mask) for mask in episode.sampled_mask] == [0, 0, 0, 1, 1, 0, 1, 1, 1, 1]


def test_an_episode_without_tokens_says_so(episode):
    for turn in episode.turns:
        turn.context_ids = turn.sampled_ids = turn.logprobs = None
    assert not episode.has_tokens
    assert episode.token_ids == []
    assert episode.sampled_mask == []


def test_an_episode_that_has_not_begun_has_score_and_return_zero():
    episode = Episode(make_task(1), None, 5, "", "")
    assert (episode.score, episode.return_, episode.end_reason) == (0.0, 0.0, "")


def test_a_record_survives_its_file(episode, tmp_path):
    file = tmp_path / "episodes.jsonl"
    write_episodes(file, [episode])
    write_episodes(file, [episode], append=True)
    assert list(read_episodes(file)) == [episode, episode]
    assert len(file.read_text(encoding="utf-8").split("\n")) == 3
    write_episodes(file, [])
    assert list(read_episodes(file)) == []


def test_a_record_leaves_out_what_is_not_assigned(episode):
    data = episode.to_json()
    assert "weights_version" not in data["turns"][1]
    assert data["turns"][2]["context_ids"] == []
    assert Episode.from_json(json.loads(json.dumps(data))) == episode


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 99}, "episode schema 1 expected, got 99"),
        ({"end_reason": "bored"}, "bored"),
        ({"task": {"id": "x"}}, "not a task"),
        ({"turns": [{"reply": "x"}]}, "missing 4 required"),
        ({"colour": "red"}, "colour"),
        ({"turns": 3}, "not an episode record"),
    ],
)
def test_what_is_no_record_is_refused(episode, change, message):
    with pytest.raises(InvalidRecord, match=message):
        Episode.from_json(episode.to_json() | change)


def test_a_broken_line_is_named(episode, tmp_path):
    file = tmp_path / "episodes.jsonl"
    write_episodes(file, [episode])
    with open(file, "a", encoding="utf-8") as stream:
        stream.write('{"schema": 1}\n')
    records = read_episodes(file)
    assert next(records) == episode
    with pytest.raises(InvalidRecord, match=r"episodes\.jsonl, line 2: not an episode record"):
        next(records)
    file.write_text("[]\n", encoding="utf-8")
    with pytest.raises(InvalidRecord, match="line 1"):
        list(read_episodes(file))


def test_end_reasons_are_strings_and_only_running_is_false():
    assert {reason for reason in EndReason if not reason} == {EndReason.RUNNING}
    assert str(EndReason.FAULT) == "fault"


def test_a_line_cut_within_a_character_is_named(episode, tmp_path):
    file = tmp_path / "episodes.jsonl"
    write_episodes(file, [episode])
    whole = file.read_bytes()
    file.write_bytes(whole + whole[: whole.index("😀".encode()) + 2])
    records = read_episodes(file)
    assert next(records) == episode
    with pytest.raises(InvalidRecord, match=r"episodes\.jsonl, line 2: 'utf-8' codec"):
        next(records)


def test_what_is_no_mapping_is_no_record():
    with pytest.raises(InvalidRecord, match="expected a mapping, got int"):
        Episode.from_json(5)
