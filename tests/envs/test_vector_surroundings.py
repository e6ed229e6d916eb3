"""Programs in unusual circumstances: closed streams, ignored signals, many open files, forks."""

import gc
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from perilous import PerilousEnv
from toys import QUICK

from agentgym_envs.vector import TextVectorEnv

HERE = Path(__file__).parent
PROCESSES = ("forkserver", "spawn")

PLAY = """
import logging, os, resource, signal, sys
import perilous
from agentgym_envs.vector import EnvPool, TextVectorEnv
logging.disable()

def play(**kwargs):
    env = TextVectorEnv(perilous.PerilousEnv, 2, workers={workers!r}, **kwargs)
    env.reset()
    faults = env.step(["die", "shout"])[4]["fault"].tolist()
    env.reset()
    faults += env.step(["add 1", "add 1"])[4]["fault"].tolist()
    env.close()
    return faults
"""
FAULTS = ["the worker process was killed by SIGKILL; the worker was replaced", "", "", ""]


def run(code, *, workers="forkserver", redirect=""):
    """What a script writes to stdout, and nothing to stderr."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-"],
        input=PLAY.format(workers=workers) + code,
        cwd=HERE,
        env=os.environ | {"PYTHONPATH": str(HERE), "PYTHONUNBUFFERED": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize("workers", PROCESSES)
@pytest.mark.parametrize("redirect", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_are_not_taken_for_connections(tmp_path, workers, redirect):
    report = tmp_path / "report"
    code = f"faults = play(); open({str(report)!r}, 'w').write(repr(faults))"
    run(code, workers=workers, redirect=redirect)
    assert report.read_text() == repr(FAULTS)


def test_closed_input_is_not_taken_for_a_connection(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(PLAY.format(workers="forkserver") + "print(play()[0])")
    command = ["sh", "-c", 'exec "$@" <&- >&2', "sh", sys.executable, str(script)]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == FAULTS[0]


@pytest.mark.parametrize(
    "circumstance",
    [
        "signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
        "signal.pthread_sigmask(signal.SIG_BLOCK, set(signal.Signals))",
        "os.mkdir(FOLDER); os.chdir(FOLDER); os.rmdir(FOLDER)",
    ],
)
def test_signals_and_folders_of_the_caller_do_not_matter(tmp_path, circumstance):
    circumstance = circumstance.replace("FOLDER", repr(str(tmp_path / "gone")))
    assert run(f"{circumstance}\nprint(play())")[-1] == repr(FAULTS)


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2000, reason="few files may be open here"
)
def test_more_open_files_than_select_knows_do_not_matter():
    code = """
resource.setrlimit(resource.RLIMIT_NOFILE, (2000, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
kept = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
print(play())
"""
    assert run(code)[-1] == repr(FAULTS)


def test_what_an_import_prints_is_printed_once(tmp_path):
    module = tmp_path / "noisy.py"
    module.write_text("from perilous import PerilousEnv as Noisy\nprint('imported')")
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
from gymnasium.envs.registration import EnvSpec
spec = EnvSpec("Noisy-v0", entry_point="noisy:Noisy", disable_env_checker=True)
env = TextVectorEnv(spec, 3, workers="forkserver")
env.reset()
env.close()
"""
    assert run(code) == ["imported"]


def test_what_an_import_starts_ends_with_the_workers(tmp_path):
    (tmp_path / "starts.py").write_text(
        "from perilous import PerilousEnv as Starts\n"
        "import subprocess\n"
        "started = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(started.pid))\n"
    )
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
from gymnasium.envs.registration import EnvSpec
spec = EnvSpec("Starts-v0", entry_point="starts:Starts", disable_env_checker=True)
env = TextVectorEnv(spec, 2, workers="forkserver")
env.reset()
env.close()
"""
    run(code)
    status = Path(f"/proc/{(tmp_path / 'pid').read_text()}/status")
    assert not status.exists() or "\nState:\tZ" in status.read_text()


@pytest.mark.parametrize("workers", ["inline", "threads", *PROCESSES])
def test_classes_of_a_script_come_back_in_infos_and_errors(workers):
    code = """
import dataclasses, enum

class Color(enum.Enum):
    RED = 1

@dataclasses.dataclass
class Place:
    x: int

class Lost(perilous.EnvFault):
    pass

class Here(perilous.PerilousEnv):
    def step(self, action):
        if action == "lose":
            raise Lost("nowhere", retryable=False)
        *head, info = super().step(action)
        return *head, info | {"color": Color.RED, "place": Place(3)}

    def ask(self):
        raise Lost("who?")

env = TextVectorEnv(Here, 2, workers=WORKERS)
env.reset()
env.send([0, 1], ["add 1", "lose"])
results = {}
while len(results) < 2:
    results |= dict(env.recv())
info = results[0].info
print(info["color"] is Color.RED, info["place"] == Place(3))
print(results[1].fault, results[1].retryable)
try:
    env.call("ask")
except Lost as error:
    print(error)
env.close()
"""
    assert run(code.replace("WORKERS", repr(workers))) == ["True True", "nowhere False", "who?"]


@pytest.mark.parametrize("workers", ["threads", "forkserver"])
def test_workers_cannot_be_used_in_a_fork_of_their_process(workers):
    code = f"""
env = TextVectorEnv(perilous.PerilousEnv, 2, workers={workers!r})
env.reset()
env.send([1], ["nap 300"])
if os.fork() == 0:
    for call in (lambda: env.send([0], ["add 1"]), env.recv):
        try:
            call()
        except RuntimeError as error:
            print("of which this one" in str(error), flush=True)
    sys.exit()
os.wait()
env.send([0], ["add 2"])
results = {{}}
while len(results) < 2:
    results |= dict(env.recv())
print(results[0].observation, results[1].fault)
"""
    assert run(code) == ["True", "True", "You add 2. The counter shows 2. "]


@pytest.mark.parametrize("workers", QUICK)
def test_environments_are_closed_when_python_ends_but_not_by_a_fork_of_it(tmp_path, workers):
    diary = tmp_path / "diary"
    code = f"""
env = TextVectorEnv(perilous.PerilousEnv, 2, workers={workers!r}, diary={str(diary)!r})
pool = EnvPool(perilous.PerilousEnv, 1, diary={str(diary)!r})
env.reset()
lent = pool.acquire()
if os.fork() == 0:
    sys.exit()
os.wait()
with open({str(diary)!r}, "a") as file:
    file.write("fork\\n")
"""
    assert run(code) == []
    assert diary.read_text().split() == ["reset"] * 2 + ["fork"] + ["close"] * 3


@pytest.mark.parametrize("workers", QUICK)
def test_environments_are_closed_when_they_are_forgotten(tmp_path, workers):
    diary = tmp_path / "diary"
    env = TextVectorEnv(PerilousEnv, 2, workers=workers, diary=str(diary))
    env.reset()
    del env
    gc.collect()
    assert diary.read_text().split() == ["reset"] * 2 + ["close"] * 2


def test_too_few_open_files_for_all_workers_leave_none_behind():
    code = """
import pathlib
resource.setrlimit(resource.RLIMIT_NOFILE, (30, 30))
try:
    TextVectorEnv(perilous.PerilousEnv, 64, workers="forkserver")
except OSError as caught:
    error = caught  # keeps its traceback, and with it what was half made
print(error.strerror)
print(pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
"""
    assert run(code) == ["Too many open files", "[]"]
