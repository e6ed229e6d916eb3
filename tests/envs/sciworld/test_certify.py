"""How tasks are certified; a whole run takes hours."""

import itertools

import pytest

from agentgym_envs.actions import Grammar
from agentgym_envs.sciworld import certify as certifying
from agentgym_envs.sciworld.actions import verbs
from agentgym_envs.sciworld.certify import certify, in_turn, read, written
from agentgym_envs.sciworld.experiments import NAMES, split_of
from agentgym_envs.sciworld.session import Session
from agentgym_envs.sciworld.tasks import certified_rows, manifest


@pytest.fixture
def session():
    world = Session()
    yield world
    world.close()


def test_a_certificate_is_made_again_as_it_is_in_the_data(session):
    found = certify(session, Grammar(verbs(())), "identify-life-stages-1", 0)
    assert found == certified_rows("identify-life-stages-1")[0]


def test_gold_actions_that_do_not_solve_a_task_are_no_certificate(session, monkeypatch):
    def tried(*gold):
        monkeypatch.setattr(certifying, "gold_actions", lambda *task: gold)
        return certify(session, Grammar(verbs(())), "boil", 0)

    assert tried("look around") == "the gold actions end at the score 0.00"
    assert tried("focus on agent") == "'focus on agent' fails the task"
    assert tried("pick up dragon", "look around") == "the gold actions end at the score 0.00"
    assert tried("dance").startswith('"dance" is not a command.')


def test_all_variations_are_tried_once_and_some_of_each_split_early():
    order = list(in_turn(NAMES))
    assert len(order) == len(set(order)) == 7207
    first = list(itertools.islice(order, 90))
    assert len({(name, split_of(name, variation)) for name, variation in first}) == 90


def test_a_stopped_run_goes_on_where_it_was(tmp_path):
    path = tmp_path / "rows.txt"
    assert read(path) == ([], {})
    path.write_text("".join(written()), encoding="utf-8")
    rows, unsolved = read(path)
    assert rows == [row for name in NAMES for row in certified_rows(name).values()]
    assert unsolved == manifest().notes["unsolved"]
    with path.open("a", encoding="utf-8") as file:
        file.write("boil 12 30 2")
    assert read(path) == (rows, unsolved)
    assert path.read_text(encoding="utf-8") == "".join(written())
