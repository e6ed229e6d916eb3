import numpy as np
import pytest

from agentgym_envs.babyai.cells import (
    BALL,
    BOX,
    CLOSED_DOOR,
    COLORS,
    EMPTY,
    KEY,
    LABELS,
    LOCKED_DOOR,
    OPEN_DOOR,
    UNSEEN,
    WALL,
    WALL_CODE,
)
from agentgym_envs.babyai.observation import (
    compact_scene,
    observation_style,
    text_scene,
    walls_around,
)
from agentgym_envs.babyai.paths import DROP, FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from agentgym_envs.babyai.view import HERE, NUM_CELLS, SIZE, Sight, View
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import UnknownName

RUNNING = EndReason.RUNNING
KINDS = {"key": KEY, "ball": BALL, "box": BOX, "wall": WALL}


def stock_cells(minigrid):
    """What stock minigrid shows, as codes of a view; the agent's own cell is left out."""
    grid, seen = minigrid.gen_obs_grid()
    cells = {}
    for column in range(SIZE):
        for row in range(SIZE):
            place = (SIZE - 1 - row) * SIZE + column
            cells[place] = code_of(grid.get(column, row)) if seen[column, row] else UNSEEN
    del cells[HERE]
    return cells


def code_of(thing):
    if thing is None:
        return EMPTY
    if thing.type == "wall":
        return WALL_CODE
    kind = KINDS.get(thing.type)
    if thing.type == "door":
        kind = OPEN_DOOR if thing.is_open else LOCKED_DOOR if thing.is_locked else CLOSED_DOOR
    return kind * 8 + COLORS.index(thing.color)


@pytest.mark.parametrize(
    "level", ["GoToLocal", "GoToObjMazeS4", "KeyCorridorS3R3", "UnblockPickup", "BossLevel", "Open"]
)
def test_the_view_is_what_stock_minigrid_shows_in_random_states(level):
    world = BabyAIWorld()
    hidden = 0
    for seed in range(8):
        world.reset(level, seed)
        rng = np.random.default_rng(seed)
        for _ in range(60):
            primitive = rng.choice([LEFT, RIGHT, FORWARD, FORWARD, FORWARD, TOGGLE, PICK_UP, DROP])
            world.step(int(primitive))
            cells = dict(enumerate(world.view().cells))
            del cells[HERE]
            assert cells == stock_cells(world.minigrid)
            hidden += UNSEEN in cells.values()
    assert hidden > 50


def test_things_are_listed_nearest_first_and_placed_as_they_are_in_the_grid():
    world = BabyAIWorld()
    for seed in range(10):
        world.reset("GoToLocal", seed)
        x, y = world.minigrid.agent_pos
        (ahead_x, ahead_y), (right_x, right_y) = world.minigrid.dir_vec, world.minigrid.right_vec
        distances = []
        for sight in world.view().sights:
            ahead, right = sight.place // SIZE, sight.place % SIZE - HERE
            there = x + ahead * ahead_x + right * right_x, y + ahead * ahead_y + right * right_y
            thing = world.minigrid.grid.get(*there)
            assert sight.name.startswith(f"{thing.color} {thing.type} ")
            distances.append(ahead + abs(right))
        assert distances == sorted(distances)


def test_names_last_for_the_episode_and_count_in_the_order_of_first_sight():
    world = BabyAIWorld()
    renumbered = 0
    for seed in range(20):
        world.reset("GoToObjDoor", seed)
        rng = np.random.default_rng(seed)
        names = {}
        for _ in range(60):
            for sight in world.view().sights:
                thing = thing_at(world, sight)
                label = sight.name.rpartition(" ")[0]
                if thing not in names:
                    known = sum(name.startswith(label) for name in names.values())
                    assert sight.name == f"{label} {known + 1}"
                    renumbered += known > 0
                assert names.setdefault(thing, sight.name) == sight.name
            world.step(int(rng.choice([LEFT, RIGHT, FORWARD, FORWARD, PICK_UP, DROP, TOGGLE])))
    assert renumbered > 5


def thing_at(world, sight):
    x, y = (int(part) for part in world.minigrid.agent_pos)
    (ahead_x, ahead_y), (right_x, right_y) = world.minigrid.dir_vec, world.minigrid.right_vec
    ahead, right = sight.place // SIZE, sight.place % SIZE - HERE
    return world.minigrid.grid.get(
        x + ahead * ahead_x + right * right_x, y + ahead * ahead_y + right * right_y
    )


def view_of(*sights, carried=None, walls=()):
    cells = bytearray(NUM_CELLS)
    for ahead, right in walls:
        cells[ahead * SIZE + right + HERE] = WALL_CODE
    placed = tuple(
        Sight(name, ahead * SIZE + right + HERE, code) for name, ahead, right, code in sights
    )
    return View(bytes(cells), placed, carried and Sight(carried, HERE, 0))


RED_BALL = BALL * 8
GREY_KEY = KEY * 8 + 5


def test_compact_scenes_are_written_as_in_the_preset():
    view = view_of(
        ("red ball 1", 3, -2, RED_BALL), ("grey key 1", 1, 0, GREY_KEY), walls=[(4, 0), (6, 0)]
    )
    assert compact_scene(view, RUNNING) == "red ball 1 f3 l2 , grey key 1 f1 . wall f4"
    door = view_of(("blue door 1", 0, 3, CLOSED_DOOR * 8 + 2), carried="grey key 2")
    assert compact_scene(door, RUNNING) == "blue door 1 closed r3 . carry grey key 2"
    assert compact_scene(view_of(), RUNNING) == "nothing"
    assert (
        compact_scene(view_of(walls=[(1, 0)]), EndReason.SUCCESS) == "success . nothing . wall f1"
    )
    here = view_of(("red door 2", 0, 0, OPEN_DOOR * 8))
    assert compact_scene(here, RUNNING) == "red door 2 open here"


def test_text_scenes_are_full_sentences():
    view = view_of(
        ("red ball 1", 3, -2, RED_BALL),
        ("grey door 1", 1, 0, LOCKED_DOOR * 8 + 5),
        carried="grey key 1",
        walls=[(2, 0), (0, -1), (0, 3)],
    )
    assert text_scene(view, RUNNING) == (
        "You see red ball 1, 3 steps ahead and 2 steps to the left. "
        "You see grey door 1 (locked), 1 step ahead. "
        "There is a wall 2 steps ahead and a wall 1 step to the left and a wall 3 steps to the "
        "right. You carry grey key 1."
    )
    assert text_scene(view_of(), RUNNING) == "You see no object. You carry nothing."
    assert text_scene(view_of(), EndReason.FAILURE).startswith("You can no longer reach your goal.")
    here = view_of(("red door 2", 0, 0, OPEN_DOOR * 8))
    assert "You see red door 2 (open), where you stand." in text_scene(here, RUNNING)


def test_walls_are_the_first_ones_in_a_straight_line():
    view = view_of(walls=[(5, 0), (6, 0), (3, 1), (0, 2), (0, 3), (0, -3)])
    assert walls_around(view.cells) == [("ahead", 5), ("to the left", 3), ("to the right", 2)]
    assert walls_around(bytes(NUM_CELLS)) == []


def test_the_two_styles_tell_the_same_things_apart():
    world = BabyAIWorld()
    scenes = {"text": {}, "compact": {}}
    for seed in range(40):
        world.reset("GoToLocal", seed)
        view = world.view()
        scenes["text"].setdefault(text_scene(view, RUNNING).split(" There is")[0], set()).add(seed)
        compact = compact_scene(view, RUNNING).partition(" . wall")[0]
        scenes["compact"].setdefault(compact, set()).add(seed)
    assert list(scenes["text"].values()) == list(scenes["compact"].values())


def test_messages_are_whole_in_text_and_one_sentence_in_compact():
    message = "There is no blue key 1 in view. In view: red ball 1."
    assert observation_style("text").message(message) == message
    assert observation_style("compact").message(message) == "There is no blue key 1 in view."
    assert observation_style("compact").message("You carry nothing.") == "You carry nothing."


def test_an_unknown_style_is_answered_with_the_known_ones():
    with pytest.raises(UnknownName, match="unknown obs_style 'compct'; did you mean 'compact'"):
        observation_style("compct")


def test_labels_name_color_and_type_of_every_code():
    assert LABELS[RED_BALL] == "red ball"
    assert LABELS[LOCKED_DOOR * 8 + 5] == LABELS[OPEN_DOOR * 8 + 5] == "grey door"
    assert sum(bool(label) for label in LABELS) == 6 * 6
