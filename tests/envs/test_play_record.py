"""Playing for the record."""

import pytest

from agentgym_envs.cli import main
from agentgym_envs.episodes import EndReason, read_episodes

PLAY = ("play", "Test/Counting-v0", "--task", "counting/train/9", "--seed", "3")


@pytest.fixture
def play(monkeypatch, tmp_path):
    """Plays with these lines, for the record."""

    def run(*lines, words=()):
        given = iter(lines)

        def read(prompt):
            for line in given:
                return line
            raise EOFError

        monkeypatch.setattr("builtins.input", read)
        return main([*PLAY, "--record", str(tmp_path / "me.jsonl"), *words])

    return run


def test_what_is_played_is_added_to_the_file(play, tmp_path):
    assert play("add 9", "done") == 0
    assert play("add 1", "nonsense", words=("--horizon", "2")) == 0
    first, second = read_episodes(tmp_path / "me.jsonl")
    assert [turn.reply for turn in first.turns] == ["add 9", "done"]
    assert (first.end_reason, first.success, first.seed) == (EndReason.SUCCESS, True, 3)
    assert first.first_observation.startswith("Make the counter show 9")
    assert (second.end_reason, second.success, second.horizon) == (EndReason.HORIZON, False, 2)
    assert [turn.action_valid for turn in second.turns] == [True, False]


def test_commands_are_recorded_in_the_format_of_the_environment(play, tmp_path):
    assert play("add 9", "done", words=("--arg", "action_format=react")) == 0
    (episode,) = read_episodes(tmp_path / "me.jsonl")
    assert episode.action_format == "react"
    assert episode.turns[0].reply.endswith("Action:\nadd 9")


def test_to_quit_is_an_episode_that_was_stopped_and_not_to_play_is_none(play, tmp_path):
    assert play("add 9", ":quit") == 0
    assert play(":quit") == 0
    (episode,) = read_episodes(tmp_path / "me.jsonl")
    assert (episode.end_reason, episode.success) == (EndReason.STOPPED, False)


def test_there_are_no_hints_and_no_second_chances_on_the_record(play, tmp_path, capsys):
    assert play("add 1", ":undo", ":hint", "done") == 0
    assert capsys.readouterr().out.count("Not while the episode is recorded.") == 2
    (episode,) = read_episodes(tmp_path / "me.jsonl")
    assert [turn.reply for turn in episode.turns] == ["add 1", "done"]
    assert not episode.success


def test_a_file_that_cannot_be_written_is_told_of_before_the_game(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("builtins.input", lambda prompt: pytest.fail("the game began"))
    assert main([*PLAY, "--record", str(tmp_path / "nowhere/me.jsonl")]) == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_a_file_of_something_else_is_refused_before_the_game(play, tmp_path, capsys):
    (tmp_path / "me.jsonl").write_text("# notes\n")
    assert play("add 9", "done") == 2
    assert "me.jsonl, line 1" in capsys.readouterr().err
    assert (tmp_path / "me.jsonl").read_text() == "# notes\n"
