import pytest

from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.sciworld.backend import server
from agentgym_envs.sciworld.experiments import (
    EXPERIMENTS,
    agentgym_variation,
    check_simplifications,
    experiment,
    simplifications_of,
    split_of,
    variations,
)
from agentgym_envs.tasks import SPLITS


def official_sets(total):
    """The package's own rule: groups of a quarter; what is left over goes to the last."""
    groups = [
        list(range(start, min(start + total // 4, total))) for start in range(0, total, total // 4)
    ]
    test = groups[3] + (groups[4] if len(groups) > 4 else [])
    return groups[0] + groups[1], groups[2], test


def test_names_and_numbers_of_variations_are_the_simulators():
    told = server().call(0, ["tasks"], 60)
    assert dict(zip(told[::2], map(int, told[1::2]), strict=True)) == {
        entry.name: entry.num_variations for entry in EXPERIMENTS
    }
    assert sum(entry.num_variations for entry in EXPERIMENTS) == 7207


def test_names_and_paper_numbers_are_the_packages():
    from scienceworld.constants import ID2TASK

    assert {entry.number: entry.name for entry in EXPERIMENTS} == ID2TASK
    assert [entry.number for entry in EXPERIMENTS] == list(ID2TASK)


@pytest.mark.parametrize("entry", EXPERIMENTS, ids=lambda entry: entry.name)
def test_splits_are_the_packages(entry):
    ours = tuple(list(variations(entry.name, split)) for split in SPLITS)
    assert ours == official_sets(entry.num_variations)
    for split in SPLITS:
        assert {split_of(entry.name, number) for number in variations(entry.name, split)} == {split}


def test_agentgyms_list_leaves_out_seven_experiments():
    assert agentgym_variation(0) == ("boil", 0)
    assert agentgym_variation(30) == ("melt", 0)
    assert agentgym_variation(4638) == ("identify-life-stages-2", 9)
    with pytest.raises(InvalidTask, match="AgentGym has 4639 items of sciworld, from 0; got 4639"):
        agentgym_variation(4639)
    listed = {agentgym_variation(number)[0] for number in range(4639)}
    assert len(listed) == 23
    assert "grow-plant" not in listed


def test_unknown_experiments_suggest_near_names():
    with pytest.raises(UnknownName, match="unknown experiment 'boyl'; did you mean 'boil'"):
        experiment("boyl")


def test_easy_leaves_electrical_actions_to_experiments_about_electricity():
    easy = check_simplifications(["easy", "easy"])
    assert easy == ("easy",)
    assert simplifications_of("boil", easy) == (
        "teleportAction,openDoors,selfWateringFlowerPots,noElectricalAction"
    )
    assert simplifications_of("test-conductivity", easy) == (
        "teleportAction,openDoors,selfWateringFlowerPots"
    )
    with pytest.raises(InvalidTask, match="power-component needs electrical actions"):
        simplifications_of("power-component", ("noElectricalAction",))
    with pytest.raises(UnknownName, match="unknown simplification 'opendoors'"):
        check_simplifications(["opendoors"])
