import json
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import gymnasium
import pytest
from counting import CountingEnv, FaultyEnv

from agentgym_envs.episodes import EndReason, read_episodes
from agentgym_envs.errors import EnvFault, InvalidState
from agentgym_envs.policies import ScriptedPolicy, run_episode
from agentgym_envs.vector import WORKERS
from agentgym_envs.wrappers import History, RecordEpisodes, TokenBudget, record

NINE = "counting/train/9"


def make(folder, env=None, **arguments) -> RecordEpisodes:
    return RecordEpisodes(env or CountingEnv(), str(folder), **arguments)


def recorded(folder):
    """All episodes in the folder, by file."""
    return {path.name: list(read_episodes(path)) for path in sorted(Path(folder).iterdir())}


def test_a_record_is_what_run_episode_gives(tmp_path):
    env = RecordEpisodes(gymnasium.make("Test/Counting-v0", action_format="react"), str(tmp_path))
    replies = ["Action: add 9", "\ud800", "Action: done"]
    played = [run_episode(env, ScriptedPolicy(replies), task=NINE, seed=seed) for seed in (3, 4)]
    assert recorded(tmp_path) == {"episodes-00000.jsonl": played}
    assert [len(episode.turns) for episode in played] == [3, 3]
    assert played[0].env_id == "Test/Counting-v0"
    assert env.path == tmp_path / "episodes-00000.jsonl"


def test_records_show_what_the_wrappers_inside_made_of_it(tmp_path):
    env = make(tmp_path, History(TokenBudget(CountingEnv(), max_tokens=4), turns=1))
    played = run_episode(env, ScriptedPolicy(["add 1"]), task=NINE)
    assert played.end_reason is EndReason.BUDGET
    assert "[Turn 2, your reply]" in played.turns[-1].observation
    assert recorded(tmp_path) == {"episodes-00000.jsonl": [played]}


def test_what_is_cut_short_was_stopped_and_what_was_never_played_is_no_episode(tmp_path):
    env = make(tmp_path)
    for turns in (2, 0, 1):
        env.reset(options={"task": NINE})
        for _ in range(turns):
            env.step("add 1")
    assert [len(episode.turns) for episode in recorded(tmp_path)["episodes-00000.jsonl"]] == [2]
    env.close()
    env.close()
    (episodes,) = recorded(tmp_path).values()
    ends = [(len(episode.turns), episode.end_reason, episode.success) for episode in episodes]
    assert ends == [(2, "stopped", False), (1, "stopped", False)]


def test_nothing_is_written_before_an_episode_ends(tmp_path):
    env = make(tmp_path / "new" / "folder")
    env.reset()
    env.clone()
    assert (env.path, recorded(tmp_path / "new" / "folder")) == (None, {})


def test_a_broken_world_is_recorded_as_a_fault(tmp_path):
    env = make(tmp_path, FaultyEnv())
    env.reset(options={"task": NINE})
    env.step("add 1")
    with pytest.raises(EnvFault):
        env.step("break")
    ((episode,),) = recorded(tmp_path).values()
    assert (episode.end_reason, episode.fault) == ("fault", "the counter fell off the wall")
    assert [turn.reply for turn in episode.turns] == ["add 1"]


def test_a_reset_that_fails_leaves_no_episode(tmp_path):
    env = make(tmp_path)
    env.reset()
    with pytest.raises(ValueError, match="unknown"):
        env.reset(options={"task": "no such task"})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("add 1")
    env.close()
    assert recorded(tmp_path) == {}


def test_instances_never_share_a_file(tmp_path):
    envs = [make(tmp_path) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(2):
            list(threads.map(lambda env: run_episode(env, task=NINE), envs))
    assert {name: len(episodes) for name, episodes in recorded(tmp_path).items()} == {
        f"episodes-{number:05d}.jsonl": 2 for number in range(8)
    }


@pytest.mark.parametrize("workers", WORKERS)
def test_positions_of_a_vector_write_files_of_their_own(tmp_path, make_vector, workers):
    wrap = partial(RecordEpisodes, folder=str(tmp_path), name_prefix="train")
    for _ in range(2):  # a second run into the same folder adds to the first
        envs = make_vector(num_envs=3, env_wrappers=[wrap], workers=workers)
        envs.reset(options={"horizons": [1, 2, 2]})
        envs.step(("add 1",) * 3)
        envs.close()
    found = recorded(tmp_path)
    assert list(found) == [f"train-{number:05d}.jsonl" for number in range(6)]
    reasons = [str(episodes[0].end_reason) for episodes in found.values()]
    assert sorted(reasons) == ["horizon"] * 2 + ["stopped"] * 4


def test_a_state_carries_the_record_so_far(tmp_path):
    env = make(tmp_path)
    env.reset(seed=5, options={"task": NINE})
    env.step("add 4")
    state, twin = env.save_state(), env.clone()
    env.step("add 5")
    env.step("done")
    other = make(tmp_path / "elsewhere", name_prefix="other")
    other.reset()
    other.step("add 2")
    other.load_state(state)
    for copy in (other, twin):
        copy.step("add 5")
        copy.step("done")
    (whole,) = recorded(tmp_path / "elsewhere")["other-00000.jsonl"][1:]
    assert recorded(tmp_path / "elsewhere")["other-00000.jsonl"][0].end_reason == "stopped"
    files = [path for path in sorted(tmp_path.iterdir()) if path.is_file()]
    assert [list(read_episodes(path)) for path in files] == [[whole], [whole]]
    assert [turn.reply for turn in whole.turns] == ["add 4", "add 5", "done"]
    assert (whole.seed, whole.success) == (5, True)


def test_a_load_that_fails_leaves_the_record_alone(tmp_path):
    env = make(tmp_path)
    env.reset(options={"task": NINE})
    env.step("add 9")
    state = env.save_state()
    for broken in (state[:-30], state.replace(b'"schema":1', b'"schema":9', 1)):
        with pytest.raises(InvalidState):
            env.load_state(broken)
    assert recorded(tmp_path) == {}
    env.step("done")
    ((episode,),) = recorded(tmp_path).values()
    assert [turn.reply for turn in episode.turns] == ["add 9", "done"]


def test_a_process_that_is_killed_leaves_whole_lines(tmp_path):
    script = f"""
        import sys
        sys.path[:0] = {sys.path!r}
        from counting import CountingEnv
        from agentgym_envs.policies import run_episode
        from agentgym_envs.wrappers import RecordEpisodes
        env = RecordEpisodes(CountingEnv(), {str(tmp_path)!r})
        while True:
            run_episode(env, task={NINE!r})
            print(flush=True)
            env.reset()
            env.step("x" * 100_000)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE
    ) as child:
        for _ in range(20):
            child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
    (path,) = tmp_path.iterdir()
    whole, _, _ = path.read_bytes().rpartition(b"\n")  # the kernel may have been amid a write
    path.write_bytes(whole)
    episodes = list(read_episodes(path))
    assert len(episodes) >= 39
    finished = [episode for episode in episodes if episode.end_reason == "success"]
    assert len(finished) >= 20


def test_a_line_that_cannot_be_written_whole_is_not_written(tmp_path, monkeypatch):
    path = tmp_path / "file"
    record._append(path, b"one\n")

    class Full:
        """A disk that takes three bytes more."""

        def __init__(self, file):
            self.file, self.room = file, 3

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def __getattr__(self, name):
            return getattr(self.file, name)

        def write(self, data):
            taken = bytes(data[: self.room])
            if not taken:
                raise OSError(28, "No space left on device")
            self.room -= len(taken)
            return self.file.write(taken)

    def open_full(*args, **kwargs):
        return Full(open(*args, **kwargs))

    monkeypatch.setattr(record, "open", open_full, raising=False)
    with pytest.raises(OSError, match="No space"):
        record._append(path, b"another\n")
    monkeypatch.undo()
    assert path.read_bytes() == b"one\n"
    record._append(path, b"two\n")
    assert path.read_bytes() == b"one\ntwo\n"


def test_lines_are_utf8_json(tmp_path):
    env = make(tmp_path)
    env.reset(options={"task": NINE, "horizon": 1})
    env.step("\u2603 \ud800")
    (line,) = env.path.read_bytes().decode("utf-8").splitlines()
    assert json.loads(line)["turns"][0]["reply"] == "\u2603 \ufffd"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"folder": ""}, TypeError),
        ({"folder": Path("x")}, TypeError),
        ({"folder": "x", "name_prefix": ""}, TypeError),
        ({"folder": "x", "name_prefix": "../x"}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match="got"):
        RecordEpisodes(CountingEnv(), **arguments)
    assert list(tmp_path.iterdir()) == []
