from collections import deque

import numpy as np
import pytest

from agentgym_envs.actions import Grammar
from agentgym_envs.babyai.actions import ACTION_MODES, HIGH_LEVEL, LOW_LEVEL, admissible
from agentgym_envs.babyai.cells import BOX, CODE_OF, EMPTY, KEY, OPEN_DOOR
from agentgym_envs.babyai.paths import FORWARD, LEFT, RIGHT, Paths, neighbors
from agentgym_envs.babyai.view import FRONT, HERE, NUM_CELLS, SIZE
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError

HIGH, LOW = Grammar(HIGH_LEVEL), Grammar(LOW_LEVEL)
LEVELS = ("GoToLocal", "UnlockLocalDist", "KeyInBox", "PutNextLocal", "OpenDoor", "BossLevel")
# Headings of the search: ahead, right, back, left.
STEPS = ((1, 0), (0, 1), (-1, 0), (0, -1))


def do(world, text, grammar=HIGH):
    command = grammar.parse(text)
    return command.verb.run(world, **command.arguments)


def built(level, seed):
    world = BabyAIWorld()
    world.reset(level, seed)
    world.view()
    return world


def random_worlds(levels=LEVELS, seeds=6, turns=6):
    """Worlds after some random commands."""
    for level in levels:
        for seed in range(seeds):
            world = built(level, seed)
            rng = np.random.default_rng(seed)
            for _ in range(turns):
                yield world
                commands = admissible(world, "high")
                do(world, commands[int(rng.integers(len(commands)))])
                if world.status is not EndReason.RUNNING:
                    break


def shortest(cells, goal):
    """Number of primitives to face `goal`, by another search, or None."""
    free = {divmod(place, SIZE) for place, code in enumerate(cells) if code >> 3 in (0, OPEN_DOOR)}
    queue, seen = deque([((0, HERE), 0, 0)]), {((0, HERE), 0)}
    while queue:
        (ahead, column), heading, length = queue.popleft()
        front = (ahead + STEPS[heading][0], column + STEPS[heading][1])
        if front == divmod(goal, SIZE):
            return length
        following = [((ahead, column), (heading + turn) % 4) for turn in (1, 3)]
        if front in free:
            following.append((front, heading))
        for state in following:
            if state not in seen:
                seen.add(state)
                queue.append((*state, length + 1))
    return None


def test_paths_are_as_short_as_those_of_another_search():
    compared = unreachable = 0
    for world in random_worlds():
        cells = world.view().cells
        for goal in range(NUM_CELLS):
            if goal == HERE:
                continue
            path = Paths(cells).facing([goal])
            assert (None if path is None else len(path)) == shortest(cells, goal)
            compared += 1
            unreachable += path is None
    assert compared > 1_000
    assert unreachable > 100


def test_following_a_path_ends_in_front_of_its_goal():
    for world in random_worlds():
        for sight in world.view().sights:
            path = world.paths().facing([sight.place])
            if path is None:
                continue
            snapshot = world.snapshot()
            walked = world.follow(path)
            if world.status is EndReason.RUNNING:
                assert walked
                assert world.front == sight.code
                assert named(world, FRONT) == sight.name
            world.restore(snapshot)


def named(world, place):
    return next((s.name for s in world.view().sights if s.place == place), None)


def test_a_path_to_several_cells_is_the_shortest_to_one_of_them():
    cells = bytes(NUM_CELLS)
    assert Paths(cells).facing([FRONT]) == []
    assert Paths(cells).facing([FRONT + SIZE]) == [FORWARD]
    assert Paths(cells).facing([HERE + 1]) == [RIGHT]
    assert Paths(cells).facing([HERE - 1, FRONT + 2 * SIZE]) == [LEFT]
    assert Paths(cells).facing([]) is None
    assert sorted(neighbors(HERE)) == [HERE - 1, HERE + 1, FRONT]
    assert sorted(neighbors(2 * SIZE)) == [SIZE, 2 * SIZE + 1, 3 * SIZE]


@pytest.mark.parametrize("mode", ["high", "low"])
def test_admissible_commands_change_the_world_and_all_others_are_refused(mode):
    grammar = Grammar(ACTION_MODES[mode])
    refused = carried_out = 0
    for world in random_worlds(seeds=3):
        allowed = admissible(world, mode)
        assert len(set(allowed)) == len(allowed)
        snapshot, key = world.snapshot(), world.state_key()
        names = [sight.name for sight in world.view().sights]
        for text in all_commands(grammar, [*names, "green key 9"]):
            # Opening is listed as "open", closing as "toggle": the wordings that say what happens.
            listed = text in allowed or (
                text.startswith("toggle ") and text.replace("toggle", "open", 1) in allowed
            )
            if listed:
                do(world, text, grammar)
                assert world.state_key() != key, text
                carried_out += 1
            else:
                with pytest.raises(CommandError):
                    do(world, text, grammar)
                assert world.state_key() == key, text
                refused += 1
            world.restore(snapshot)
    assert refused > 100
    assert carried_out > 100


def all_commands(grammar, names):
    for entry in grammar.verbs:
        if entry.parameters:
            yield from (entry.forms[0].format(**{entry.parameters[0].name: n}) for n in names)
        else:
            yield entry.forms[0]


def test_every_example_parses_to_its_own_verb():
    for grammar in (HIGH, LOW):
        for entry in grammar.verbs:
            for example in entry.examples:
                assert grammar.parse(example, strict=True).verb is entry


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("pickup red ball 1", "pick up red ball 1"),
        ("Pick Up red ball 1.", "pick up red ball 1"),
        ("go forward", "move forward"),
        ("walk to red ball 1", "go to red ball 1"),
        ("open and go through red door 1", "toggle and go through red door 1"),
        ("toggle", "toggle"),
        ("toggle red door 1", "toggle red door 1"),
        ("drop it", "drop"),
        ("put next to red box 2", "put next to red box 2"),
    ],
)
def test_synonyms_are_understood(text, canonical):
    assert HIGH.parse(text).text == canonical


def test_going_to_a_thing_stops_in_front_of_it():
    world = built("PickupDist", 2)
    sight = next(s for s in world.view().sights if s.place != FRONT)
    assert do(world, f"go to {sight.name}") == ""
    assert named(world, FRONT) == sight.name
    with pytest.raises(CommandError, match=f"already stand in front of {sight.name}"):
        do(world, f"go to {sight.name}")


def test_the_number_may_be_left_out_only_where_it_cannot_be_mistaken():
    world = next(w for w in random_worlds(["GoToLocal"], seeds=30) if has_twins(w))
    names = [sight.name for sight in world.view().sights]
    labels = [name.rpartition(" ")[0] for name in names]
    twin = next(label for label in labels if labels.count(label) > 1)
    with pytest.raises(CommandError, match=f"There are 2 of them in view. Say {twin} 1 or"):
        do(world, f"go to {twin}")
    single = next(label for label in labels if labels.count(label) == 1)
    do(world, f"go to the {single.upper()}")
    assert named(world, FRONT).startswith(single)


def has_twins(world):
    labels = [sight.name.rpartition(" ")[0] for sight in world.view().sights]
    counts = [labels.count(label) for label in labels]
    return 2 in counts and 1 in counts


def test_what_is_not_in_view_is_refused_with_what_is():
    world = built("GoToRedBall", 5)
    with pytest.raises(CommandError) as refusal:
        do(world, "pick up blue key 7")
    names = ", ".join(sight.name for sight in world.view().sights)
    assert str(refusal.value) == f"There is no blue key 7 in view. In view: {names}."
    with pytest.raises(CommandError, match=r"no x{80}… in view"):
        do(world, "go to " + 200 * "x")


def test_picking_up_dropping_and_putting_next_to():
    world = next(
        w for seed in range(9) if len((w := built("PutNextLocal", seed)).view().sights) > 3
    )
    first, second = (sight.name for sight in world.view().sights[:2])
    with pytest.raises(CommandError, match=r"^You carry nothing\.$"):
        do(world, "drop")
    with pytest.raises(CommandError, match=r"^You carry nothing\.$"):
        do(world, f"put next to {second}")
    do(world, f"pick up {first}")
    assert world.view().carried.name == first
    second = world.view().sights[0].name
    with pytest.raises(CommandError, match=f"You already carry {first}. Drop it first."):
        do(world, f"pick up {second}")
    with pytest.raises(CommandError, match=f"^You carry {first}.$"):
        do(world, f"go to {first}")
    assert world.front == EMPTY
    do(world, "drop")
    assert named(world, FRONT) == first
    assert world.view().carried is None


def test_putting_next_to_wins_put_next_missions():
    won = 0
    world = BabyAIWorld()
    for seed in range(40):
        world.reset("PutNextLocal", seed)
        moved, fixed = (part.removeprefix("the ") for part in mission_parts(world))
        names = [sight.name for sight in world.view().sights]
        if f"{moved} 1" in names and f"{fixed} 1" in names:
            try:
                do(world, f"pick up {moved}")
                do(world, f"put next to {fixed}")
            except CommandError:
                continue
            assert world.status is EndReason.SUCCESS
            won += 1
    assert won >= 3


def mission_parts(world):
    return world.mission.removeprefix("put ").split(" next to ")


def test_a_key_in_a_box_opens_the_locked_door():
    world = next(w for seed in range(40) if sees(w := built("KeyInBox", seed), ("box", "door")))
    box, door = (name_of(world, kind) for kind in ("box", "door"))
    with pytest.raises(CommandError, match=r"You need to carry a \w+ key: .* is locked"):
        do(world, f"open {door}")
    do(world, f"open {box}")
    key = named(world, FRONT)
    assert " key " in key
    assert world.front >> 3 == KEY
    do(world, f"pick up {key}")
    color = door.split()[0]
    assert world.carried == CODE_OF[color, KEY]
    for _ in range(4):
        if any(sight.name == door for sight in world.view().sights):
            break
        do(world, "turn left")
    do(world, f"toggle and go through {door}")
    assert world.status is EndReason.SUCCESS


def sees(world, kinds):
    return all(name_of(world, kind) for kind in kinds) and admissible(world, "high")[-1:]


def name_of(world, kind):
    return next((s.name for s in world.view().sights if f" {kind} " in s.name), None)


def test_going_through_a_door_ends_behind_it():
    world = next(w for seed in range(40) if reaches_door(w := built("FindObjS7", seed)))
    door = name_of(world, "door")
    with pytest.raises(CommandError, match=f"You cannot go through {door} before you open it"):
        do(world, f"go through {door}")
    before = world.minigrid.room_from_pos(*world.minigrid.agent_pos)
    assert do(world, f"toggle and go through {door}") == ""
    x, y = world.minigrid.agent_pos
    assert not before.pos_inside(x, y)
    behind = world.minigrid.grid.get(*(world.minigrid.agent_pos - world.minigrid.dir_vec))
    assert (behind.type, behind.is_open) == ("door", True)
    do(world, "turn left")
    do(world, "turn left")
    with pytest.raises(CommandError, match=f"nothing to open: {door} is open already"):
        do(world, f"open {door}")
    with pytest.raises(CommandError, match=f"nothing to open: go through {door} as it is"):
        do(world, f"toggle and go through {door}")
    assert do(world, f"go through {door}") == ""
    assert before.pos_inside(*world.minigrid.agent_pos)


def reaches_door(world):
    door = name_of(world, "door")
    return door and f"toggle and go through {door}" in admissible(world, "high")


def test_a_door_with_something_behind_it_is_gone_through_as_far_as_possible():
    world = next(w for seed in range(60) if reaches_door(w := built("FindObjS7", seed)))
    door = name_of(world, "door")
    snapshot = world.snapshot()
    do(world, f"toggle and go through {door}")
    x, y = (int(part) for part in world.minigrid.agent_pos)
    ball = next(t for t in world.mirror.thing_at.values() if t.type != "door")
    world.restore(snapshot)
    world.minigrid.grid.set(x, y, ball)
    world.mirror.read_grid()
    note = do(world, f"toggle and go through {door}")
    assert note == f"You stop in {door}: {ball.color} {ball.type} 1 is in the way."
    assert named(world, HERE) == door
    with pytest.raises(CommandError, match=f"You stand in {door}. Move forward to leave it."):
        do(world, f"go through {door}")


def test_a_mission_decided_on_the_way_ends_the_walk():
    decided = 0
    for seed in range(60):
        world = built("GoToRedBall", seed)
        for sight in world.view().sights:
            snapshot = world.snapshot()
            path = world.paths().facing([sight.place])
            if path and not sight.name.startswith("red ball"):
                do(world, f"go to {sight.name}")
                if world.status is EndReason.SUCCESS:
                    assert named(world, FRONT).startswith("red ball")
                    assert world.num_steps < len(path)
                    decided += 1
            world.restore(snapshot)
    assert decided >= 1


def test_a_strict_mission_fails_on_the_wrong_object():
    level = "PickupDistDebug"
    world = next(w for seed in range(30) if len((w := built(level, seed)).view().sights) > 2)
    outcomes = set()
    snapshot = world.snapshot()
    for sight in world.view().sights:
        try:
            do(world, f"pick up {sight.name}")
        except CommandError:
            continue
        outcomes.add(world.status)
        assert admissible(world, "high") == []
        world.restore(snapshot)
    assert EndReason.FAILURE in outcomes
    assert outcomes <= {EndReason.FAILURE, EndReason.SUCCESS}


def test_refusals_say_what_is_in_the_way():
    world = built("GoToRedBall", 0)
    while world.front == EMPTY:
        do(world, "move forward")
    obstacle = named(world, FRONT) or "a wall"
    with pytest.raises(CommandError, match=f"You cannot move forward: {obstacle} is in the way"):
        do(world, "move forward")
    assert world.front >> 3 != BOX
    with pytest.raises(CommandError, match="There is no door or box in front of you"):
        do(world, "toggle")


def test_low_level_verbs_are_the_six_primitives():
    world = built("PickupDist", 3)
    assert [entry.forms[0] for entry in LOW_LEVEL] == [
        "turn left", "turn right", "move forward", "pick up", "drop", "toggle",
    ]  # fmt: skip
    sight = world.view().sights[0]
    for primitive in world.paths().facing([sight.place]):
        do(world, ("turn left", "turn right", "move forward")[primitive], LOW)
    do(world, "pickup", LOW)
    assert world.view().carried.name == sight.name
    with pytest.raises(CommandError, match="is not a command"):
        do(world, "go to red ball 1", LOW)
