import random

import pytest

from agentgym_envs.babyai.cells import LABELS, LOCKED_DOOR, WALL
from agentgym_envs.babyai.env import BabyAIEnv
from agentgym_envs.babyai.levels import AGENTGYM, SINGLE_ROOM
from agentgym_envs.babyai.oracle import MAX_TURNS, plan
from agentgym_envs.babyai.strategy import GONE, OUT_OF_REACH
from agentgym_envs.babyai.tasks import certified_tasks, manifest
from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS

CERTIFIED = sorted({level for split in SPLITS for level in manifest().splits[split].categories})


def start(level, seed, **arguments):
    env = BabyAIEnv(levels=level, **arguments)
    env.reset(options={"task": f"babyai/any/{level}/{seed}", "horizon": MAX_TURNS})
    return env


def play_on(env):
    """Lets the oracle play from here to the end; its commands and the last info."""
    oracle, commands, ended = env.oracle(), [], False
    while not ended:
        commands.append(oracle.reply("", {}))
        _, _, terminated, truncated, info = env.step(commands[-1])
        assert info["action_valid"], commands
        ended = terminated or truncated
    return commands, info


def things_of_the_mission(env):
    """The things that each clause refers to, by clause and description."""
    found, instructions = [], [env.world.minigrid.instrs]
    for instruction in instructions:  # grows while it is read
        parts = vars(instruction)
        instructions += [parts[name] for name in ("instr_a", "instr_b") if name in parts]
        names = ("desc", "desc_move", "desc_fixed")
        found += [parts[name].obj_set for name in names if name in parts]
    return found


@pytest.mark.parametrize("level", CERTIFIED)
def test_certified_tasks_are_solved_in_the_turns_they_state(level):
    env = BabyAIEnv(levels=level)
    for split in SPLITS:
        if level in manifest().splits[split].categories:
            for task in certified_tasks(split, [level])[:3]:
                episode = run_episode(env, task=task.id)
                assert (episode.success, len(episode.turns)) == (True, task.difficulty), task.id


@pytest.mark.slow
@pytest.mark.parametrize("level", CERTIFIED)
def test_every_certified_task_is_solved_in_the_turns_it_states(level):
    env = BabyAIEnv(levels=level)
    for split in SPLITS:
        if level in manifest().splits[split].categories:
            for task in certified_tasks(split, [level]):
                episode = run_episode(env, task=task.id)
                assert (episode.success, len(episode.turns)) == (True, task.difficulty), task.id


@pytest.mark.parametrize(
    "level", ["GoToRedBall", "PutNextLocalS6N4", "KeyInBox", "UnlockToUnlock", "SynthSeq"]
)
def test_it_plays_in_primitives_within_the_horizon_of_that_mode(level):
    env = BabyAIEnv(levels=level, action_mode="low")
    for task in certified_tasks("dev", [level])[:10]:
        episode = run_episode(env, task=task.id)
        assert episode.success
        assert {turn.reply for turn in episode.turns} <= {
            "turn left",
            "turn right",
            "move forward",
            "pick up",
            "drop",
            "toggle",
        }


@pytest.mark.parametrize("action_mode", ["high", "low"])
@pytest.mark.parametrize("level", AGENTGYM)
def test_it_goes_on_from_where_random_commands_have_led(level, action_mode):
    for seed in range(3):
        env = start(level, seed, action_mode=action_mode)
        rng = random.Random(seed)
        for _ in range(5):
            if env.world.status == "":
                env.step(rng.choice(env.admissible()))
        if env.world.status != "":
            continue
        things = {*env.world.mirror.thing_at.values(), env.world.minigrid.carrying}
        if all(things.intersection(named) for named in things_of_the_mission(env)):
            assert play_on(env)[1]["success"], (level, seed)
        else:  # it was a box, which opening makes vanish
            with pytest.raises(NoPlan, match=GONE):
                play_on(env)


def test_what_is_in_view_is_gone_to_at_once_and_what_is_not_is_looked_for():
    visible = start("GoToRedBall", 5)
    assert play_on(visible)[0] == ["go to red ball 1"]
    turns = []
    for seed in range(100):
        env = start("GoToRedBallGrey", seed)
        at_once = "go to red ball 1" in env.admissible()
        commands, _ = play_on(env)
        assert at_once == (commands == ["go to red ball 1"])
        turns.append(len(commands))
    assert max(turns) <= 4
    assert sum(turns) / 100 < 2


def test_it_solves_single_rooms_in_few_turns():
    means = {}
    for level in SINGLE_ROOM:
        tasks = list(certified_tasks("dev", [level]))
        means[level] = sum(task.difficulty for task in tasks) / len(tasks)
    assert max(means.values()) < 3


def test_planning_leaves_the_episode_as_it_was():
    env = start("BossLevel", 3)
    before = env.save_state(), env.state_key(), env.world.view()
    env.oracle().reply("", {})
    assert (env.save_state(), env.state_key(), env.world.view()) == before


def test_a_plan_is_the_same_in_every_environment():
    plans = []
    for _ in range(2):
        env = start("BossLevel", 3)
        plans.append(plan(env.world, env.grammar))
    assert plans[0] == plans[1]
    assert next(iter(plans[0].values())) == env.oracle().reply("", {})


def test_it_makes_a_new_plan_when_the_episode_is_another():
    env = start("GoToLocal", 0)
    oracle = env.oracle()
    for seed in (1, 2, 3):
        env.reset(options={"task": f"babyai/any/GoToLocal/{seed}", "horizon": MAX_TURNS})
        success = False
        while not success:
            *_, info = env.step(oracle.reply("", {}))
            assert info["action_valid"]
            success = info["success"]


def within_reach_without_a_key(world):
    """What is in the cells that one gets to when only walls and locked doors stop one."""
    mirror, found, queue = world.mirror, set(), [world.mirror.cell]
    for cell in queue:  # grows while it is read
        for near in (cell + step for step in mirror.headings):
            if mirror.codes[near] >> 3 not in (WALL, LOCKED_DOOR) and near not in found:
                found.add(near)
                queue.append(near)
    return {LABELS[mirror.codes[cell]] for cell in found}


def test_the_seeds_on_which_the_stock_bot_never_returns_are_solved_or_given_up():
    env = start("GoToImpUnlock", 6)
    with pytest.raises(NoPlan, match=OUT_OF_REACH):
        env.oracle().reply("", {})
    assert env.world.mission == "go to the grey key"
    assert not {"grey key", "yellow key"} & within_reach_without_a_key(env.world)
    assert [LABELS[code] for code in env.world.mirror.codes if code >> 3 == LOCKED_DOOR] == [
        "yellow door"
    ]
    for seed in range(10):
        assert play_on(start("UnlockToUnlock", seed))[1]["success"]


def test_a_mission_that_is_over_has_no_plan():
    env = start("GoToRedBall", 5)
    env.step("go to red ball 1")
    with pytest.raises(NoPlan, match="the episode is over"):
        env.oracle().reply("", {})


def test_a_door_that_was_opened_too_early_is_closed_and_opened_again():
    env = start("OpenTwoDoors", 0)
    assert env.world.mission == "open the purple door, then open the red door"
    while "open red door 1" not in env.admissible():
        env.step("turn left")
    env.step("open red door 1")
    commands, info = play_on(env)
    assert info["success"]
    doors = [command for command in commands if "door" in command]
    assert doors == ["open purple door 1", "toggle red door 1", "open red door 1"]


def test_a_key_is_taken_out_of_its_box():
    commands, _ = play_on(start("KeyInBox", 0))
    assert any(command.startswith("open") and "box" in command for command in commands)
    assert any(command.startswith("pick up") and "key" in command for command in commands)
    assert "door" in commands[-1]


def test_what_is_carried_at_the_start_is_put_down_where_it_belongs():
    for seed in range(10):
        commands, info = play_on(start("PutNextS7N4Carrying", seed))
        assert info["success"]
        assert commands[-1].startswith("put next to")
