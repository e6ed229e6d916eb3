"""Tasks are named, and known by a digest of their words; the words stay in the simulator."""

import dataclasses
import gzip
import re

import pytest

from agentgym_envs.errors import InvalidTask
from agentgym_envs.sciworld import tasks
from agentgym_envs.sciworld.experiments import NAMES
from agentgym_envs.sciworld.tasks import Row, certified_task, digest_of

BOIL = "sciworld/train/boil/0"


def test_a_digest_is_the_beginning_of_sha_256_whatever_the_blanks():
    assert digest_of("Count the lamps.") == "eb5c04797841"  # printf … | sha256sum
    assert digest_of("  Count\n the \t lamps.\n") == "eb5c04797841"
    assert digest_of("Count the lamps") != "eb5c04797841"
    assert digest_of("count the lamps.") != "eb5c04797841"


def test_a_task_names_its_experiment_and_variation():
    task = certified_task("sciworld/dev/melt/15")
    assert task.goal == "melt, variation 15"
    assert (task.category, task.split) == ("melt", "dev")
    assert task.payload.keys() == {"experiment", "variation", "stated"}
    assert (task.payload["experiment"], task.payload["variation"]) == ("melt", 15)


def test_a_row_is_one_line():
    row = Row("boil", 3, 40, 37, "eb5c04797841")
    assert str(row) == "boil 3 40 37 eb5c04797841"
    assert Row.parse(str(row)) == row
    assert (row.task().difficulty, row.task().horizon) == (40, 85)
    for line in ("", "boil 3 40 37", "boil three 40 37 eb5c04797841"):
        with pytest.raises(InvalidTask, match=re.escape(f"not a task of sciworld: {line!r}")):
            Row.parse(line)


def test_the_data_hold_no_words_of_tasks():
    data = tasks._data("")
    assert {path.name for path in data.iterdir()} == {
        "README.md",
        "manifest.json",
        "simulators.jar",
        "tasks.txt.gz",
    }
    lines = gzip.decompress((data / "tasks.txt.gz").read_bytes()).decode().splitlines()
    found = [re.fullmatch(r"([a-z0-9-]+) \d+ \d+ \d+ [0-9a-f]{12}", line) for line in lines]
    assert None not in found
    assert {match[1] for match in found} == set(NAMES)


@pytest.mark.parametrize("stated", ["eb5c04797841", None])
def test_a_task_made_for_other_words_is_refused(make, stated):
    task = certified_task(BOIL)
    payload = {key: value for key, value in task.payload.items() if key != "stated"}
    if stated is not None:
        payload["stated"] = stated
    env = make()
    message = (
        rf"task '{BOIL}' carries the digest {stated!r}, but the simulator states 'Your task is to "
        rf"boil water\..*', whose digest is '{task.payload['stated']}'; take the task by its id"
    )
    with pytest.raises(InvalidTask, match=message):
        env.reset(options={"task": dataclasses.replace(task, payload=payload)})
    env.reset(options={"task": task})
