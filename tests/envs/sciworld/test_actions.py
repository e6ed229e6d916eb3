"""Our grammar beside the simulator's own templates and lists."""

import itertools
import re

import pytest

from agentgym_envs.actions import Grammar
from agentgym_envs.sciworld.actions import lines_of, verbs
from agentgym_envs.sciworld.oracle import gold_of
from agentgym_envs.sciworld.session import Session

ALL = Grammar(verbs(("teleportAction",)))


@pytest.fixture(scope="module")
def session():
    opened = Session()
    yield opened
    opened.close()


def ways_of_writing(template):
    """All lines of a template, with x and y for the objects."""
    objects = iter("xy")
    parts = [
        part[1:-1].split("|") if part.startswith("(") else [next(objects)]
        for part in re.findall(r"\([^)]*\)|OBJ", template)
    ]
    return [" ".join(choice) for choice in itertools.product(*parts)]


def test_every_way_of_writing_an_action_is_read_and_means_the_same(session):
    session.load("boil", 0, "teleportAction")
    templates = session.templates()
    assert len(templates) == 27
    for template in templates:
        ways = ways_of_writing(template)
        commands = [ALL.parse(line) for line in ways]
        assert len({command.verb.name for command in commands}) == 1, template
        lines = {command.verb.run(None, **command.arguments) for command in commands}
        assert len(lines) == 1
        assert lines <= set(ways)


def test_our_verbs_are_the_templates_and_the_choice():
    assert len(ALL.verbs) == 27 + 1
    assert len(Grammar(verbs(())).verbs) == 26 + 1
    assert len(Grammar(verbs(("noElectricalAction",))).verbs) == 24 + 1
    assert "teleport_to" in {entry.name for entry in verbs(("easy",))}


@pytest.mark.parametrize(
    ("experiment", "steps"), [("boil", 4), ("power-component", 3), ("grow-plant", 5)]
)
def test_valid_actions_of_the_simulator_are_canonical_commands(session, experiment, steps):
    session.load(experiment, 0, "")
    for line in gold_of(experiment, 0, "")[:steps]:
        session.step(line)
    valid = session.valid_actions()
    assert len(valid) > 300
    assert valid == sorted(set(valid))
    for line in valid:
        command = ALL.parse(line)
        assert command.verb.run(None, **command.arguments) == line


def test_a_third_of_the_simulators_own_list_would_be_refused_and_is_not_in_ours(session):
    session.load("boil", 0, "")
    for line in gold_of("boil", 0, "")[:4]:
        session.step(line)
    valid = session.valid_actions()
    assert "connect agent to ceramic cup" not in valid  # the cup is in a closed cupboard
    assert not session.step("connect agent to ceramic cup").is_understood


POUR = "pour cup containing blue paint in art studio in cup containing red paint in table"


def test_names_that_hold_joining_words_are_told_in_every_way_that_they_may_be_split():
    command = ALL.parse(POUR)
    first, *others = lines_of(command)
    assert first == POUR.replace("paint in table", "paint into table")
    assert POUR in others
    assert all(line.startswith("pour ") for line in others)
    assert lines_of(ALL.parse("pour cup into table")) == ["pour cup into table"]
    assert lines_of(ALL.parse("open door to kitchen")) == ["open door to kitchen"]


def test_such_a_command_is_carried_out_and_can_be_replayed(make):
    env = make()
    env.reset(options={"task": "sciworld/test/chemistry-mix-paint-secondary-color/27"})
    oracle = env.oracle()
    replies = []
    while POUR.replace("paint in table", "paint into table") not in replies:
        replies.append(oracle.reply("", {}))
        *_, info = env.step(replies[-1])
        assert info["action_valid"], replies[-1]
    twin = env.clone()
    assert twin.step("look around")[0] == env.step("look around")[0]
    twin.close()
