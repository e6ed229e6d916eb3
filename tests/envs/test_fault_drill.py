"""The fault drill, whole: 8 environments, 2,000 steps each, 60 of them sabotaged."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fault_drill.py"


def run_drill(*options):
    done = subprocess.run(
        [sys.executable, str(SCRIPT), *options],
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done.returncode, {line["figure"].partition("/")[2]: line for line in lines}


def test_nobody_but_the_victims_notices_that_workers_are_killed_hang_and_raise():
    code, figures = run_drill("--deadline", "3")
    assert figures["episodes"]["hit"] == 60
    assert figures["episodes"]["value"] > 400
    assert figures["differing"]["value"] == 0
    assert figures["faults"]["value"] == {"kill": 20, "hang": 20, "raise": 20}
    assert figures["processes_left"]["value"] == 0
    assert (figures["passed"]["value"], code) == (True, 0)


@pytest.mark.slow
def test_spawned_workers_pass_too():
    code, figures = run_drill("--workers", "spawn")
    assert (figures["passed"]["value"], code) == (True, 0)
