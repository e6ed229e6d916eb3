import functools
import random
import re

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs import testing
from agentgym_envs.actions import Grammar
from agentgym_envs.babyai.compat import VERBS, world_of_index
from agentgym_envs.babyai.levels import AGENTGYM
from agentgym_envs.errors import InvalidTask, NoPlan
from agentgym_envs.policies import run_episode

UNRECOGNIZED = "The action is not recognized. Please check valid actions."


def make(**arguments):
    return gymnasium.make("AgentGym/BabyAI-v0", compat="agentgym", **arguments)


def parts(observation):
    """The text of an observation and its list of actions."""
    text, listed = re.fullmatch(
        r"(.*)\nAvailable actions: \[(.*)\]", observation, re.DOTALL
    ).groups()
    return text, re.findall(r'"(.*?)"', listed)


def walk_to(env, observation, prefix):
    """Turn until an action with this prefix is listed, then do it."""
    for _ in range(4):
        command = next((c for c in parts(observation)[1] if c.startswith(prefix)), None)
        if command:
            return env.step(command)
        observation = env.step("turn right")[0]
    raise AssertionError(f"no {prefix} in {observation}")


def test_an_index_is_a_level_and_a_seed():
    assert [world_of_index(n)[0] for n in range(40)] == list(AGENTGYM)
    assert world_of_index(0) == ("GoToRedBallGrey", 0)
    assert world_of_index(3) == ("GoToObjS6", 0)
    assert world_of_index(39) == ("BossLevelNoUnlock", 0)
    assert world_of_index(40 * 17 + 10) == ("GoToObjDoor", 17)
    env = make(info_keys=("level",))
    _, info = env.reset(options={"task": 40 * 5 + 1})
    assert (info["level"], env.unwrapped.task.seed) == ("GoToRedBall", 5)
    with pytest.raises(InvalidTask, match="begin at 0, got -1"):
        env.reset(options={"task": -1})


def test_the_first_observation_states_the_goal_with_its_order_words():
    env = make()
    for index, words in ((14, ", then "), (15, " after you ")):
        text, _ = parts(env.reset(options={"task": index})[0])
        goal = text.splitlines()[0]
        assert goal == f"Your goal: {env.unwrapped.task.goal}"
        assert words in goal


def test_every_listed_action_is_done_and_the_list_is_what_is_admissible():
    env = make(info_keys=("admissible",), horizon=1000)
    rng = random.Random(0)
    num_steps = 0
    for index in (0, 6, 10, 21, 25, 28, 32, 38):
        observation, info = env.reset(options={"task": index})
        for _ in range(40):
            listed = parts(observation)[1]
            assert listed == info["admissible"]
            observation, _, terminated, _, info = env.step(rng.choice(listed))
            assert info["action_valid"]
            num_steps += 1
            if terminated:
                assert info["admissible"] == []
                break
    assert num_steps > 150


def test_answers_to_actions_that_change_nothing_are_those_of_agentgym():
    env = make()
    listed = parts(env.reset(options={"task": 1})[0])[1]
    world = env.unwrapped.world
    before = world.to_json()
    plain = ", ".join(listed)
    for action, answer in {
        "banana": UNRECOGNIZED,
        "pickup purple box 9": UNRECOGNIZED,
        "toggle": UNRECOGNIZED,
        "please check this": UNRECOGNIZED,
        "drop": "You cannot drop the object, as you are not carrying anything.",
        "check available actions": f"You can take the following actions: {plain}",
    }.items():
        observation, reward, terminated, truncated, info = env.step(action)
        assert parts(observation) == (answer, listed)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info["action_valid"] == action.startswith("check")
    assert world.to_json() == before


def test_to_go_to_a_thing_in_front_changes_nothing_and_is_said_to():
    env = make(horizon=100)
    observation = walk_to(env, env.reset(options={"task": 4})[0], "go to")[0]
    in_front = re.search("There is a (.*?) right in front of you 1 steps away", observation)[1]
    before = env.unwrapped.world.to_json()
    observation, _, _, _, info = env.step(f"go to {in_front}")
    assert parts(observation)[0] == "No change in state."
    assert info["action_valid"]
    assert env.unwrapped.world.to_json() == before


def test_case_blanks_and_the_space_in_pick_up_do_not_matter():
    grammar = Grammar(VERBS)
    for text in ("pickup grey key 1", " Pick up   Grey KEY 1. ", '"PICKUP grey key 1"'):
        command = grammar.parse(text)
        assert command.verb.name == "pickup"
        assert command.text.lower() == "pickup grey key 1"


def test_every_example_parses_as_its_verb():
    grammar = Grammar(VERBS)
    for verb in VERBS:
        assert all(grammar.parse(example, strict=True).verb is verb for example in verb.examples)


def test_instructions_list_every_verb_and_the_format():
    env = make(action_format="react")
    assert "counted afresh in every observation" in env.unwrapped.instructions
    for verb in VERBS:
        assert f"- {verb.forms[0].replace('{target}', '<target>')}: " in env.unwrapped.instructions
    env.reset(options={"task": 0})
    assert env.step("Thought:\nI look around.\n\nAction:\nturn left")[4]["action_valid"]
    observation, *_, info = env.step("I look around.")
    assert not info["action_valid"]
    assert parts(observation)[0].startswith('There is no "Action:" in the reply')


def test_success_is_paid_once_and_ends_the_walk_and_the_episode():
    env = make()
    observation, _ = env.reset(options={"task": 1})
    assert env.unwrapped.task.goal == "go to the red ball"
    assert env.step("banana")[1] == 0.0
    observation, reward, terminated, truncated, info = walk_to(
        env, env.step("check available actions")[0], "pickup red ball"
    )
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["success"]
    assert info["score"] == 1.0
    text, listed = parts(observation)
    assert text.endswith("You are not carrying anything.\n The task is completed.")
    assert "check available actions" in listed
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("check available actions")


def test_failure_ends_the_episode_without_reward_and_is_said_to():
    env = make(horizon=100)
    for seed in range(20):  # PickupDistDebug: to pick up a wrong thing is to fail
        observation, _ = env.reset(options={"task": 40 * seed + 19})
        observation, reward, terminated, _, info = walk_to(env, observation, "pickup")
        if info["end_reason"] == "failure":
            break
    assert (reward, terminated, info["success"]) == (0.0, True, False)
    assert parts(observation)[0].endswith("\n The task has failed.")


def test_the_horizon_truncates():
    env = make(horizon=2)
    env.reset(options={"task": 7})
    assert env.step("turn left")[2:4] == (False, False)
    assert env.step("check available actions")[2:4] == (False, True)


def test_the_key_in_a_box_can_be_taken_and_its_door_opened():
    env = make(horizon=100)
    observation, _ = env.reset(options={"task": 25})
    observation = walk_to(env, observation, "go to")[0]
    while "box" not in parts(observation)[0] or "toggle" not in parts(observation)[1]:
        boxes = [c for c in parts(observation)[1] if re.match("go to .* box", c)]
        observation = env.step(boxes[0] if boxes else "turn right")[0]
    observation = env.step("toggle")[0]
    observation = walk_to(env, observation, "pickup")[0]
    assert re.search("You are carrying a .* key", observation)
    _, reward, terminated, _, _ = walk_to(env, observation, "toggle and go through")
    assert (reward, terminated) == (1.0, True)


def test_transcripts_after_loading_a_state_are_the_same():
    env = make(horizon=100)
    env.reset(options={"task": 38})
    for action in ("turn right", "move forward", "turn right"):
        env.step(action)
    twin = env.unwrapped.clone()
    for action in ("move forward", "check available actions", "turn left", "toggle"):
        assert env.step(action) == twin.step(action)


def test_the_oracle_solves_a_task_of_each_level_in_the_actions_that_are_listed():
    env = make()
    for index in range(40):
        episode = run_episode(env, task=index)
        assert episode.success, episode.task.id
        seen = [episode.first_observation, *(turn.observation for turn in episode.turns)]
        for turn, observation in zip(episode.turns, seen, strict=False):
            assert turn.reply in parts(observation)[1]


def test_certified_tasks_are_solved_within_their_horizon():
    env = make(levels="redball", split="test")
    for task in env.unwrapped.tasks.shuffle(0).head(60):
        assert run_episode(env, task=task).success


def test_the_oracle_changes_nothing_and_goes_on_from_any_state():
    env = make(horizon=500)
    for index in (21, 31, 38):
        env.reset(options={"task": index})
        oracle = env.unwrapped.oracle()
        for action in ("turn left", "move forward", "turn left", "check available actions"):
            before = env.unwrapped.world.to_json()
            oracle.reply("", {})
            assert env.unwrapped.world.to_json() == before
            env.step(action)
        info = {"end_reason": ""}
        while not info["end_reason"]:
            *_, info = env.step(oracle.reply("", {}))
        assert info["success"]
        with pytest.raises(NoPlan, match="over"):
            oracle.reply("", {})


def test_it_conforms():
    slow = (testing.check_processes, testing.check_silence, testing.check_stock_vector)
    checks = [check for check in testing.CHECKS if check not in slow]
    arguments = {"compat": "agentgym", "levels": "redball", "action_format": "react"}
    make_one = functools.partial(gymnasium.make, "AgentGym/BabyAI-v0", **arguments)
    testing.check_text_env(make_one, checks)
