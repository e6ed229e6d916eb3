import importlib
import json
import os
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

from agentgym_envs.babyai import generation
from agentgym_envs.babyai.generation import make_level, registered_levels
from agentgym_envs.babyai.levels import (
    AGENTGYM,
    RED_BALL,
    SINGLE_ROOM,
    all_levels,
    check_level,
    resolve_levels,
)
from agentgym_envs.babyai.paths import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import EnvFault, InvalidState, UnknownName

VARIED = (
    "GoToRedBallGrey",
    "GoToObjS6",
    "GoToImpUnlock",
    "OpenDoorsOrderN4Debug",
    "UnblockPickup",
    "PutNextS7N4Carrying",
    "KeyInBox",
    "UnlockToUnlock",
    "PickupDistDebug",
    "MoveTwoAcrossS8N9",
    "MiniBossLevel",
    "BossLevel",
)


def stock(level):
    return gymnasium.make(registered_levels()[level].id).unwrapped


def built(level, seed):
    world = BabyAIWorld()
    world.reset(level, seed)
    return world


def pose_and_grid(minigrid):
    x, y = minigrid.agent_pos
    return int(x), int(y), int(minigrid.agent_dir), minigrid.grid.encode().tolist()


def random_primitives(seed, count):
    choices = [LEFT, RIGHT, FORWARD, FORWARD, FORWARD, PICK_UP, DROP, TOGGLE, TOGGLE]
    return [int(p) for p in np.random.default_rng(seed).choice(choices, size=count)]


@pytest.mark.parametrize("level", VARIED)
def test_a_world_is_that_of_stock_minigrid_for_the_same_seed(level):
    env = stock(level)
    world = BabyAIWorld()
    for seed in (0, 7, 123_456):
        env.reset(seed=seed)
        world.reset(level, seed)
        assert pose_and_grid(world.minigrid) == pose_and_grid(env)
        assert world.mission == env.mission
        assert world.max_steps == env.max_steps
        assert (world.carried > 0) == (env.carrying is not None)


@pytest.mark.parametrize("level", [name for name in VARIED if "Order" not in name])
def test_random_play_goes_as_in_stock_minigrid(level):
    env, world = stock(level), BabyAIWorld()
    for seed in range(4):
        env.reset(seed=seed)
        world.reset(level, seed)
        for primitive in random_primitives(seed, 150):
            before = pose_and_grid(env), env.carrying
            _, reward, terminated, _, _ = env.step(primitive)
            went_on = world.step(primitive)
            assert pose_and_grid(world.minigrid) == pose_and_grid(env)
            changed = (pose_and_grid(env), env.carrying) != before
            assert went_on == (changed and not terminated)
            if terminated:
                won = reward != 0
                assert world.status is (EndReason.SUCCESS if won else EndReason.FAILURE)
                break
            assert world.status is EndReason.RUNNING


def test_one_world_object_builds_the_same_whatever_it_built_before():
    world = BabyAIWorld()
    for level, seed in (("BossLevel", 3), ("GoToRedBall", 1), ("BossLevel", 4), ("BossLevel", 3)):
        world.reset(level, seed)
        fresh = built(level, seed)
        assert (world.layout, world.mission) == (fresh.layout, fresh.mission)


def test_every_level_of_minigrid_builds():
    world = BabyAIWorld()
    for level in all_levels():
        world.reset(level, 2)
        assert world.mission
        assert world.view().cells


def test_generation_prints_nothing_and_leaves_the_environment_variables_alone():
    code = (
        "import os; before = dict(os.environ)\n"
        "from agentgym_envs.babyai.world import BabyAIWorld\n"
        "world = BabyAIWorld()\n"
        "for seed in range(5): world.reset('GoToObjDoor', seed)\n"
        "assert dict(os.environ) == before\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_level_that_rejects_every_mission_is_a_fault(monkeypatch):
    world = built("GoToRedBall", 0)
    rejection = importlib.import_module("minigrid.envs.babyai.core.roomgrid_level").RejectSampling

    def reject():
        raise rejection("never good enough")

    world.minigrid.gen_mission = reject
    monkeypatch.setattr(generation, "MAX_ATTEMPTS", 20)
    with pytest.raises(EnvFault, match="rejected 20 worlds of GoToRedBall"):
        world.reset("GoToRedBall", 1)
    del world.minigrid.gen_mission
    world.reset("GoToRedBall", 1)
    assert world.layout == built("GoToRedBall", 1).layout


def test_a_generation_that_draws_without_end_is_a_fault(monkeypatch):
    monkeypatch.setattr(generation, "MAX_DRAWS", 30)
    with pytest.raises(EnvFault, match="BossLevel drew more than 30 numbers"):
        built("BossLevel", 0)


def test_opening_the_first_of_two_ordered_doors_does_not_fail_the_mission():
    """With stock minigrid, the toggle that opens the first door fails every ordered mission."""
    ordered = 0
    for seed in range(12):
        world = built("OpenDoorsOrderN4Debug", seed)
        first, second, wrong = ordered_doors(world)
        if second is None:
            continue
        ordered += 1
        assert toggle_from_the_room(world, first) is EndReason.RUNNING
        assert toggle_from_the_room(world, second) is EndReason.SUCCESS
        world = built("OpenDoorsOrderN4Debug", seed)
        assert toggle_from_the_room(world, wrong) is EndReason.FAILURE
        world = built("OpenDoorsOrderN4Debug", seed)
        assert toggle_from_the_room(world, first) is EndReason.RUNNING
        assert toggle_from_the_room(world, wrong) is EndReason.FAILURE
    assert ordered >= 5


def ordered_doors(world):
    """The doors of the mission in order, and one that is not in it."""
    room = world.minigrid.get_room(1, 1)
    doors = {door.color: door for door in room.doors if door}
    after = " after you " in world.mission
    colors = [word for word in world.mission.replace(",", "").split() if word in doors]
    first, second = [*colors, None][:2]
    if after:
        first, second = second, first
    wrong = next(door for color, door in doors.items() if color not in colors)
    return doors[first], doors.get(second), wrong


def toggle_from_the_room(world, door):
    """Stand in the middle room in front of a door, and toggle."""
    room = world.minigrid.get_room(1, 1)
    x, y = door.cur_pos
    for heading, (dx, dy) in enumerate(((1, 0), (0, 1), (-1, 0), (0, -1))):
        if room.pos_inside(x - dx, y - dy) and world.minigrid.grid.get(x - dx, y - dy) is None:
            world.minigrid.agent_pos, world.minigrid.agent_dir = (x - dx, y - dy), heading
    world.mirror.read_pose()
    world.step(TOGGLE)
    return world.status


def test_minigrids_step_limit_ends_nothing():
    world = built("GoToObjS4", 0)
    assert world.max_steps == 16
    for _ in range(100):
        world.step(LEFT)
        world.step(RIGHT)
    assert world.status is EndReason.RUNNING or world.num_steps < 16


def test_the_digest_tells_layouts_and_poses_apart_but_not_missions():
    assert built("GoToLocal", 4).digest() == built("GoToLocal", 4).layout
    assert built("GoToLocal", 4).layout != built("GoToLocal", 5).layout
    world = built("GoToLocal", 4)
    world.step(LEFT)
    assert world.digest() != world.layout
    world.step(RIGHT)
    assert world.digest() == world.layout
    assert built("SynthSeq", 1).layout == built("BossLevel", 1).layout


def test_digests_do_not_change_between_versions():
    assert built("GoToRedBall", 0).layout[:16] == "92a4f23cc3da3aac"
    assert built("PutNextS7N4Carrying", 1).layout[:16] == "7103c79f0f4b015d"


@pytest.mark.parametrize("level", VARIED)
def test_a_snapshot_goes_back_to_the_same_future(level):
    for seed in range(3):
        world = built(level, seed)
        world.view()
        play(world, random_primitives(seed, 40))
        snapshot = world.snapshot()
        future = play(world, random_primitives(seed + 100, 60))
        for _ in range(2):
            world.restore(snapshot)
            assert play(world, random_primitives(seed + 100, 60)) == future


@pytest.mark.parametrize("level", VARIED)
def test_a_state_as_json_goes_on_identically_in_another_world(level):
    other = BabyAIWorld()
    for seed in range(3):
        world = built(level, seed)
        play(world, random_primitives(seed, 40))
        other.load_json(json.loads(json.dumps(world.to_json())))
        assert other.state_key() == world.state_key()
        assert other.to_json() == world.to_json()
        future = play(world, random_primitives(seed + 100, 60))
        assert play(other, random_primitives(seed + 100, 60)) == future


def play(world, primitives):
    """What is seen on the way; stops when the mission is decided."""
    seen = []
    for primitive in primitives:
        if world.status is not EndReason.RUNNING:
            break
        world.step(primitive)
        seen.append((world.view(), world.status, world.state_key()))
    return seen


def test_saved_progress_survives_a_new_process():
    world = built("KeyInBox", 1)
    play(world, random_primitives(5, 30))
    code = (
        "import json, sys\n"
        "from agentgym_envs.babyai.world import BabyAIWorld\n"
        "world = BabyAIWorld()\n"
        "world.load_json(json.load(sys.stdin))\n"
        "print(world.state_key(), world.num_steps)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(world.to_json()),
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONHASHSEED": "77"},
    )
    assert done.stdout.split() == [world.state_key(), str(world.num_steps)]


def test_half_done_missions_are_restored_half_done():
    world = built("OpenTwoDoors", 0)
    first, second = (door for door in world.minigrid.get_room(1, 1).doors if door)
    if first.color not in world.mission.split(",")[0]:
        first, second = second, first
    assert toggle_from_the_room(world, first) is EndReason.RUNNING
    snapshot, saved = world.snapshot(), world.to_json()
    assert toggle_from_the_room(world, second) is EndReason.SUCCESS
    world.restore(snapshot)
    assert toggle_from_the_room(world, second) is EndReason.SUCCESS
    world.load_json(saved)
    second = next(door for door in world.minigrid.get_room(1, 1).doors if door and not door.is_open)
    assert toggle_from_the_room(world, second) is EndReason.SUCCESS


def test_snapshots_of_other_worlds_and_broken_states_are_refused():
    world = built("GoToRedBall", 0)
    snapshot, saved = world.snapshot(), world.to_json()
    world.step(LEFT)
    world.reset("GoToRedBall", 1)
    with pytest.raises(InvalidState, match="another world"):
        world.restore(snapshot)
    with pytest.raises(InvalidState, match="another version of minigrid"):
        world.load_json(saved | {"layout": "0" * 64})
    with pytest.raises(InvalidState, match="KeyError"):
        world.load_json({"level": "GoToRedBall"})
    with pytest.raises(InvalidState, match="not the state"):
        world.load_json(saved | {"fields": saved["fields"][:-1]})
    world.load_json(saved)
    assert world.layout == built("GoToRedBall", 0).layout


def test_state_keys_merge_histories_that_lead_to_the_same_state():
    world = built("GoToRedBall", 3)
    world.view()
    key = world.state_key()
    for primitive in (LEFT, LEFT, RIGHT, RIGHT):
        world.step(primitive)
    assert world.state_key() == key
    world.step(LEFT)
    assert world.state_key() != key


def test_state_keys_depend_on_mission_progress():
    world = built("OpenTwoDoors", 0)
    before = world.state_key()
    for door in filter(None, world.minigrid.get_room(1, 1).doors):
        snapshot = world.snapshot()
        toggle_from_the_room(world, door)
        toggle_from_the_room(world, door)
        world.minigrid.agent_pos, world.minigrid.agent_dir = built_pose("OpenTwoDoors", 0)
        world.mirror.read_pose()
        progressed = door.color in world.mission.split(",")[0]
        assert (world.state_key() != before) == progressed
        world.restore(snapshot)


def test_state_keys_tell_apart_who_is_number_one_of_things_that_look_alike():
    """Looking around to the left and to the right ends where it began, with other names."""
    equal = different = 0
    for seed in range(40):
        worlds = [built("GoToLocal", seed) for _ in range(2)]
        for world, turn in zip(worlds, (LEFT, RIGHT), strict=True):
            for _ in range(4):
                world.view()
                world.step(turn)
        left, right = (sorted(world.to_json()["names"]) for world in worlds)
        same = worlds[0].state_key() == worlds[1].state_key()
        assert same == (left == right)
        equal += same
        different += not same
    assert equal > 5
    assert different > 1


def built_pose(level, seed):
    minigrid = built(level, seed).minigrid
    return minigrid.agent_pos, minigrid.agent_dir


def test_the_forty_levels_are_there_and_the_suites_resolve():
    assert len(AGENTGYM) == len(set(AGENTGYM)) == 40
    assert set(AGENTGYM) <= set(registered_levels())
    assert registered_levels()["GoToObjS6"].id == "BabyAI-GoToObjS6-v1"
    assert resolve_levels("agentgym") == AGENTGYM
    assert resolve_levels(["redball", "GoToRedBall", "Open"]) == (*RED_BALL, "Open")
    assert len(resolve_levels("single_room")) == 10
    assert len(all_levels()) == len(registered_levels())
    assert all_levels()[:40] == AGENTGYM


def test_single_room_levels_need_no_key_and_no_second_room():
    world = BabyAIWorld()
    for level in SINGLE_ROOM:
        for seed in range(10):
            world.reset(level, seed)
            things = world.mirror.thing_at.values()
            assert not any(thing.type == "door" and thing.is_locked for thing in things)
            room = world.minigrid.room_from_pos(*world.minigrid.agent_pos)
            assert all(room.pos_inside(*thing.cur_pos) for thing in things)


def test_unknown_levels_are_answered_with_near_names():
    with pytest.raises(UnknownName, match="unknown level 'GoToRedBal'; did you mean 'GoToRedBall'"):
        check_level("GoToRedBal")
    with pytest.raises(UnknownName, match="'redball'"):
        resolve_levels("redbal")
    with pytest.raises(UnknownName, match=r"unknown level 'BossLvl'; did you mean .*'BossLevel'"):
        make_level("BossLvl")
    with pytest.raises(ValueError, match="levels is empty"):
        resolve_levels([])
