"""Nothing of a vector environment outlives it, however it ends."""

import gc
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from perilous import PerilousEnv

from agentgym_envs.vector import TextVectorEnv

HERE = Path(__file__).parent
MARK = "AGENTGYM_TEST_MARK"

SCRIPT = """
import os, signal, sys, time
import perilous
from agentgym_envs.vector import TextVectorEnv
env = TextVectorEnv(perilous.PerilousEnv, 3, workers={workers!r}, diary={diary!r})
env.reset()
env.send([1, 2], [{command!r}, "hatch"])
while not any(index == 2 for index, _ in env.recv()):
    pass
print("ready", flush=True)
sys.stdin.readline()
{end}
"""


@pytest.fixture
def mark(monkeypatch):
    """Marks all processes that are started from now on, wherever they end up."""
    value = uuid.uuid4().hex
    monkeypatch.setenv(MARK, value)
    return value


def marked(mark):
    """Processes with the mark in their environment, but for those that are dead already."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"{MARK}={mark}".encode() in (folder / "environ").read_bytes():
                found.append((int(folder.name), (folder / "cmdline").read_bytes()[-60:]))
        except OSError:
            continue
    return found


def children():
    """Ids of this process's children, dead ones that nobody has waited for among them."""
    threads = Path("/proc/self/task").glob("*/children")
    return {int(pid) for thread in threads for pid in thread.read_text().split()}


def wait_until_left(mark, count):
    """Wait until so many processes are left; their ids."""
    end = time.monotonic() + 8
    while len(left := marked(mark)) != count and time.monotonic() < end:
        time.sleep(0.05)
    assert len(left) == count, left
    return [pid for pid, _ in left]


@pytest.fixture
def script(mark, tmp_path):
    """Starts a script with workers: one that does `command`, one that has started a process."""
    started = []

    def start(end, *, command="nap 600000", workers="forkserver"):
        code = SCRIPT.format(
            workers=workers, diary=str(tmp_path / "diary"), command=command, end=end
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        wait_until_left(mark, 6)  # the script, its launcher, three workers, `sleep`
        process.stdin.write("\n")
        process.stdin.flush()
        return process

    yield start
    for pid, _ in marked(mark):
        os.kill(pid, signal.SIGKILL)
    for process in started:
        process.communicate()


@pytest.mark.parametrize("workers", ["forkserver", "spawn"])
def test_closing_leaves_no_process_behind(mark, tmp_path, workers):
    before = children()
    diary = tmp_path / "diary"
    env = TextVectorEnv(PerilousEnv, 3, workers=workers, diary=str(diary))
    env.reset()
    assert len(marked(mark)) == 4
    assert len(children() - before) == 1
    env.step(["hatch", "die", "add 1"])
    env.close()
    env.close()
    wait_until_left(mark, 0)  # killed processes take a moment to be gone
    assert diary.read_text().split() == ["reset"] * 3 + ["close"] * 2
    assert children() <= before  # no zombie either


def test_closing_ends_what_hangs(mark):
    env = TextVectorEnv(PerilousEnv, 3, workers="forkserver")
    env.reset()
    env.send(range(3), ["nap 600000", "brood", "add 1"])
    start = time.monotonic()
    env.close()
    assert 4 < time.monotonic() - start < 15
    assert marked(mark) == []


def test_environments_have_time_to_close(mark, tmp_path):
    diary = tmp_path / "diary"
    env = TextVectorEnv(PerilousEnv, 2, workers="forkserver", diary=str(diary), close_s=0.7)
    env.reset()
    env.close()
    assert diary.read_text().split() == ["reset", "reset", "close", "close"]
    assert marked(mark) == []


def test_replacing_workers_leaves_none_behind(mark):
    env = TextVectorEnv(PerilousEnv, 3, workers="forkserver", step_timeout_s=0.3)
    for _ in range(3):
        env.reset()
        *_, truncations, _ = env.step(["die", "nap 60000", "exit"])
        assert truncations.all()
        assert len(marked(mark)) == 1  # the launcher
    env.close()
    assert marked(mark) == []


def test_what_cannot_be_made_leaves_no_process_behind(mark):
    with pytest.raises(ValueError, match="unknown split"):
        TextVectorEnv(PerilousEnv, 2, workers="forkserver", split="trian")
    assert marked(mark) == []


def test_a_vector_environment_that_is_forgotten_is_closed(mark):
    env = TextVectorEnv(PerilousEnv, 2, workers="forkserver")
    env.reset()
    del env
    gc.collect()
    assert marked(mark) == []


@pytest.mark.parametrize("command", ["nap 600000", "brood"])
def test_nothing_outlives_a_killed_parent(script, mark, command):
    process = script("time.sleep(600)", command=command)
    process.kill()
    wait_until_left(mark, 0)


def test_nothing_spawned_outlives_a_killed_parent(script, mark):
    process = script("time.sleep(600)", command="brood", workers="spawn")
    process.kill()
    wait_until_left(mark, 0)


def test_ctrl_c_reaches_the_caller_alone_who_can_go_on_and_close(script, mark, tmp_path):
    process = script(
        """
try:
    os.killpg(0, signal.SIGINT)
    env.recv()
except KeyboardInterrupt:
    print("interrupted", flush=True)
env.send([0, 2], ["add 1", "add 1"])
results = {}
while len(results) < 2:
    results |= dict(env.recv())
print(sorted(results), [result.fault for result in results.values()])
""",
        command="nap 1500",
    )
    out, err = process.communicate(timeout=30)
    assert out.splitlines() == ["interrupted", "[0, 2] ['', '']"], err
    wait_until_left(mark, 0)
    assert (tmp_path / "diary").read_text().split().count("close") == 3


def test_ctrl_c_that_ends_the_script_ends_everything(script, mark):
    process = script("env.recv()", command="nap 1000")
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert "KeyboardInterrupt" in err
    assert process.returncode != 0
    wait_until_left(mark, 0)


def test_sigterm_ends_everything(script, mark):
    process = script("time.sleep(600)", command="brood")
    process.terminate()
    wait_until_left(mark, 0)


def test_python_ending_without_close_closes_the_environments(script, mark, tmp_path):
    process = script("", command="add 1")
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0
    assert marked(mark) == []
    assert (tmp_path / "diary").read_text().split().count("close") == 3


def test_a_fork_of_the_caller_neither_ends_the_workers_nor_keeps_them_alive(script, mark):
    process = script(
        """
if os.fork() == 0:
    env.close()
    time.sleep(600)
    os._exit(0)
time.sleep(0.5)
env.send([0], ["add 1"])
print(env.recv()[0][1].observation, flush=True)
time.sleep(600)
"""
    )
    assert process.stdout.readline() == "You add 1. The counter shows 1.\n"
    wait_until_left(mark, 7)
    process.kill()
    wait_until_left(mark, 1)  # the fork
