"""Mutations: does a test fail whenever a sign, shift, mask or normalizer of learning is wrong?

Changes one thing in a function (see `mutants.py`), runs the tests that call the function, quickest
first, and goes on to the next change. A mutant is killed if a test fails or the deadline passes.
One that survives is printed with what was there and what is there now: either a test is missing, or
the change changes no behavior. Every mutant is a forked process with other code in the imported
function, in a copy of the repository. What else is computed at import, as constants and settings'
defaults are, is left alone.

    python benchmarks/mutation.py
    python benchmarks/mutation.py --paths agentgym_train/algorithms/ppo.py

Prints JSON lines: each survivor, then how many were killed and survived, by file and in all. Takes
about a quarter of an hour.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import types
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from common import emit
from mutants import Mutant, mutants, mutate

REPOSITORY = Path(__file__).parents[1]
PATHS = ["agentgym_train/algorithms"]
NAMES = ("advantages", "losses", "algorithms", "dpo", "evolve", "refill")
TESTS = [f"tests/train/test_{name}.py" for name in NAMES]
PYTEST = ["-s", "-p", "no:terminal", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "setup.cfg"]
PYTEST += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]


class Drill:
    """A pytest plugin that runs the tests on mutants instead of once.

    Args:
        files: what to change.
        deadline: of a mutant, in seconds.
    """

    def __init__(self, files: list[Path], deadline: int) -> None:
        self.files, self.deadline = files, deadline
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if not forked(lambda: self.record_calls(session.items), deadline=3600):
            raise pytest.UsageError("the tests do not pass as they are; run pytest to see why")
        calls = json.loads(Path("calls.json").read_text(encoding="utf-8"))
        tests = sorted(session.items, key=lambda item: calls[item.nodeid]["seconds"])
        known = [found for found in gc.get_objects() if type(found) is types.FunctionType]
        counts: Counter[tuple[str, bool]] = Counter()  # by file and whether it survived
        for file in self.files:
            name = str(file.relative_to(Path.cwd()))
            for mutant in mutants(file.read_text(encoding="utf-8")):
                place = [str(file), mutant.start]
                changed = [function for function in known if place_of(function.__code__) == place]
                callers = [test for test in tests if place in calls[test.nodeid]["places"]]
                survived = forked(partial(self.pass_with, mutant, changed, callers), self.deadline)
                if survived:
                    details = {"file": name, "line": mutant.line, "before": mutant.before}
                    emit("mutation/survivor", mutant.after, "", **details)
                for group in (name, "all"):
                    counts[group, survived] += 1
            report(name, counts)
        report("all", counts)
        return True

    def record_calls(self, tests: list[pytest.Item]) -> bool:
        """Write how long each test takes and which functions it calls; whether all passed."""
        calls = {}
        for test in tests:
            called: dict[types.CodeType, None] = {}
            start = time.perf_counter()
            sys.setprofile(lambda frame, *_, called=called: called.setdefault(frame.f_code))
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
            sys.setprofile(None)
            places = [place_of(code) for code in called]
            calls[test.nodeid] = {"seconds": time.perf_counter() - start, "places": places}
        Path("calls.json").write_text(json.dumps(calls), encoding="utf-8")
        return not self.failed

    def pass_with(
        self, mutant: Mutant, changed: list[types.FunctionType], tests: list[pytest.Item]
    ) -> bool:
        """Whether the tests pass with a mutant of these functions."""
        for function in changed:
            mutate(function, mutant)
        for test in tests:
            test.config.hook.pytest_runtest_protocol(item=test, nextitem=None)
            if self.failed:
                return False
        return True


def report(file: str, counts: Counter[tuple[str, bool]]) -> None:
    """Print how many mutants of a file, or of all, were killed."""
    emit("mutation/killed", counts[file, False], "mutants", survived=counts[file, True], file=file)


def place_of(code: types.CodeType) -> list[Any]:
    """The file and the first line of a function."""
    return [code.co_filename, code.co_firstlineno]


def forked(work: Callable[[], bool], deadline: int) -> bool:
    """Whether `work` gives true in a process of its own, unseen and in so many seconds."""
    process = os.fork()
    if not process:
        done = False
        try:
            os.setpgid(0, 0)
            signal.alarm(deadline)
            for stream in (1, 2):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
            done = work()
        finally:
            os._exit(not done)
    _, status = os.waitpid(process, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)  # what it has started
    return status == 0


def main() -> None:
    """Run the mutants of all files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paths", nargs="+", default=PATHS, help="files and folders to change")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="files of tests")
    parser.add_argument("--deadline", type=int, default=120, help="of a mutant, in seconds")
    options = parser.parse_args()
    hypothesis.settings.register_profile("mutation", deadline=None, derandomize=True)
    hypothesis.settings.load_profile("mutation")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "copy"
        ignored = shutil.ignore_patterns(".*", "runs", "__pycache__", "*.egg-info")
        shutil.copytree(REPOSITORY, folder, ignore=ignored)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        paths = map(folder.joinpath, options.paths)
        files = [f for path in paths for f in (sorted(path.glob("*.py")) or [path])]
        words = [*PYTEST, *options.tests]
        sys.exit(pytest.main(words, plugins=[Drill(files, options.deadline)]))


if __name__ == "__main__":
    main()
