import random

import pytest

from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.oracle import TextCraftOracle
from agentgym_envs.textcraft.planner import Planner
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import certified_tasks, default_tasks


class CountingPlanner(Planner):
    """A planner that counts how often it is asked for a plan."""

    num_asked = 0

    def plan(self, goal, inventory=None):
        self.num_asked += 1
        return super().plan(goal, inventory)


@pytest.fixture
def env():
    return TextCraftEnv()


def start(env, item):
    env.reset(options={"task": default_tasks().of_goal(item), "horizon": 100})


def play_out(env, oracle):
    """Turns until success with the oracle's commands, each of which is done."""
    turns = 0
    while True:
        _, _, terminated, _, info = env.step(oracle.next_command())
        turns += 1
        assert info["action_valid"]
        if terminated:
            assert info["success"]
            return turns


def test_the_oracle_solves_tasks_in_the_turns_that_they_state(env):
    for task in certified_tasks("test"):
        episode = run_episode(env, task=task)
        assert episode.success
        assert len(episode.turns) == task.difficulty


@pytest.mark.parametrize("action_format", ["command", "react", "json", "code", "tools"])
def test_the_oracle_speaks_every_action_format(action_format):
    env = TextCraftEnv(action_format=action_format, strict=True)
    task = default_tasks().of_goal("cyan bed")
    episode = run_episode(env, task=task)
    assert episode.success
    assert len(episode.turns) == task.difficulty == 10


def test_one_plan_is_made_as_long_as_the_world_follows_it(env):
    planner = CountingPlanner(default_book())
    start(env, "bookshelf")
    assert play_out(env, TextCraftOracle(env, planner)) == 8
    assert planner.num_asked == 1


def test_commands_that_change_nothing_do_not_disturb_the_plan(env):
    planner = CountingPlanner(default_book())
    start(env, "bookshelf")
    oracle = TextCraftOracle(env, planner)
    for _ in range(3):
        env.step(oracle.next_command())
        env.step("inventory")
        env.step("craft 1 chest using 1 stick")
    assert play_out(env, oracle) == 5
    assert planner.num_asked == 1


def test_a_new_plan_is_made_where_the_world_left_the_old_one(env):
    start(env, "bookshelf")
    oracle = TextCraftOracle(env, Planner(default_book()))
    env.step(oracle.next_command())
    env.step("get 2 oak log")
    env.step("craft 8 oak planks using 2 oak log")
    turns = play_out(env, oracle)
    assert turns <= 6  # the planks are there


def test_things_used_up_for_something_else_are_made_again(env):
    start(env, "chest")
    oracle = TextCraftOracle(env, Planner(default_book()))
    env.step(oracle.next_command())
    env.step(oracle.next_command())
    held = dict(env.world.inventory)
    (planks,) = held
    env.step(f"craft 16 stick using 8 {planks}")
    assert env.world.inventory == {"stick": 16}
    assert play_out(env, oracle) == 3


def test_the_oracle_solves_from_wherever_a_random_player_left_the_world():
    rng = random.Random(0)
    env = TextCraftEnv(info_keys=("admissible",))
    for item in rng.sample(default_book().goals, 25):
        start(env, item)
        oracle = env.oracle()
        info = {"admissible": ["inventory"]}
        over = False
        for _ in range(15):
            command = rng.choice(info["admissible"])
            observation, _, over, _, info = env.step(command)
            if over:
                break
        while not over:
            observation, _, over, truncated, info = env.step(oracle.reply(observation, info))
            assert info["action_valid"]
            assert not truncated
        assert info["success"]


def test_a_loaded_state_is_solved_from_where_it_stands(env):
    start(env, "cyan bed")
    oracle = TextCraftOracle(env, Planner(default_book()))
    for _ in range(4):
        env.step(oracle.next_command())
    saved = env.save_state()
    other = TextCraftEnv()
    other.load_state(saved)
    assert play_out(other, TextCraftOracle(other, Planner(default_book()))) == 6


def test_an_episode_that_is_over_has_no_plan(env):
    start(env, "stick")
    oracle = TextCraftOracle(env, Planner(default_book()))
    play_out(env, oracle)
    with pytest.raises(NoPlan, match="stick is in the inventory already"):
        oracle.next_command()
