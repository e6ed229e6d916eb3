"""The world of docs/own-world.md keeps the contract, and its oracle takes the certified turns."""

import sys
from pathlib import Path

import gymnasium
import pytest

from agentgym_envs.policies import run_episode
from agentgym_envs.testing import check_family

sys.path.insert(0, str(Path(__file__).parents[2] / "docs" / "examples"))

import lamps


def test_the_kit_passes_the_lamps_bare_and_wrapped():
    check_family("Lamps-v0")


@pytest.mark.parametrize(("split", "size"), [("train", 147), ("dev", 48), ("test", 48)])
def test_the_oracle_lights_the_lamps_of_every_task_in_the_certified_turns(split, size):
    env = gymnasium.make("Lamps-v0", split=split)
    assert len(env.tasks) == size
    for task in env.tasks:
        episode = run_episode(env, task=task)
        assert episode.success
        assert len(episode.turns) == task.difficulty


def test_a_button_switches_its_lamp_and_the_one_to_the_right():
    assert lamps.switched(4, {1, 2, 4}, 2) == {1, 3, 4}
    assert lamps.switched(4, {4}, 4) == set()


def test_a_button_that_is_not_there_is_answered_and_changes_nothing():
    env = gymnasium.make("Lamps-v0", split="train")
    env.reset(options={"task": "lamps/train/3-3"})
    observation, _, _, _, info = env.step("press 4")
    assert observation == "There is no button 4; there are 1 to 3."
    assert not info["action_valid"]
    assert env.state_key() == "3 [3]"
