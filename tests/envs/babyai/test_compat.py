import functools
import random
import re

import gymnasium
import pytest

import agentgym_envs  # noqa: F401
from agentgym_envs import testing
from agentgym_envs.actions import Grammar
from agentgym_envs.babyai.cells import (
    CLOSED_DOOR,
    CODE_OF,
    COLORS,
    EMPTY,
    KIND_OF_TYPE,
    LOCKED_DOOR,
    OPEN_DOOR,
    UNSEEN,
    WALL_CODE,
)
from agentgym_envs.babyai.compat import (
    VERBS,
    available_actions,
    description,
    world_of_index,
)
from agentgym_envs.babyai.compat_scene import START, Scene, Ways
from agentgym_envs.babyai.levels import AGENTGYM
from agentgym_envs.babyai.paths import FORWARD, LEFT, PICK_UP, RIGHT, TOGGLE
from agentgym_envs.errors import InvalidTask, NoPlan
from agentgym_envs.policies import run_episode

EAST, SOUTH, WEST, NORTH = range(4)
KINDS = {
    "K": KIND_OF_TYPE["key"],
    "O": KIND_OF_TYPE["ball"],
    "B": KIND_OF_TYPE["box"],
    "_": OPEN_DOOR,
    "D": CLOSED_DOOR,
    "L": LOCKED_DOOR,
}
INITIALS = {color[0]: color for color in COLORS if color != "grey"} | {"e": "grey"}
UNRECOGNIZED = "The action is not recognized. Please check valid actions."


def code(token):
    plain = {"..": EMPTY, "##": WALL_CODE, "??": UNSEEN, "/\\": EMPTY}
    if token in plain:
        return plain[token]
    return CODE_OF[INITIALS[token[1]], KINDS[token[0]]]


def cells(drawing):
    """The codes of a view that is drawn as the agent sees it: the farthest row on top."""
    rows = [line.split() for line in drawing.strip().splitlines()]
    assert [len(row) for row in rows] == [7] * 7
    return bytes(code(token) for row in rows[::-1] for token in row)


def scene(drawing, carried="", heading=NORTH):
    return Scene(cells(drawing), code(carried) if carried else 0, heading)


def make(**arguments):
    return gymnasium.make("AgentGym/BabyAI-v0", compat="agentgym", **arguments)


def parts(observation):
    """The text of an observation and its list of actions."""
    text, listed = re.fullmatch(
        r"(.*)\nAvailable actions: \[(.*)\]", observation, re.DOTALL
    ).groups()
    return text, re.findall(r'"(.*?)"', listed)


ROOM = r"""
    ## ## ## ## ## ## ##
    .. .. .. .. .. .. ##
    .. .. .. .. .. Or ##
    .. Ke .. .. .. .. ##
    Or .. .. Bg .. .. ##
    .. .. .. .. .. Ke ##
    .. .. .. /\ Or .. ##
"""


def test_a_view_is_described_thing_by_thing_then_the_walls_then_what_is_carried():
    assert description(scene(ROOM)) == (
        "In front of you in this room, you can see several objects: "
        "There is a red ball 1 0 steps in front of you and 1 steps to your right.  "
        "There is a green box 1 right in front of you 2 steps away.  "
        "There is a grey key 1 1 steps in front of you and 2 steps to your right.  "
        "There is a grey key 2 3 steps in front of you and 2 steps to your left.  "
        "There is a red ball 2 2 steps in front of you and 3 steps to your left.  "
        "There is a red ball 3 4 steps in front of you and 2 steps to your right.  "
        "The room has walls around you. You are facing a box 2 steps away. "
        "You are not carrying anything."
    )


EQUALLY_FAR = r"""
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. Ob .. .. ..
    .. .. Ob .. Ob .. ..
    .. Ob .. .. .. Ob ..
    Ob .. .. /\ .. .. Ob
"""


def test_of_equally_near_things_the_farthest_ahead_then_the_leftmost_comes_first():
    places = [(thing.name, thing.place) for thing in scene(EQUALLY_FAR).things]
    straight_ahead, two_rows_ahead, one_row_ahead, beside = 24, (16, 18), (8, 12), (0, 6)
    expected = [straight_ahead, *two_rows_ahead, *one_row_ahead, *beside]
    assert places == [(f"blue ball {n}", place) for n, place in enumerate(expected, start=1)]


DOORS = r"""
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ## Dr ## Lr ## Dr ##
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    _r .. .. /\ .. .. Lb
"""


def test_a_door_is_named_and_counted_by_color_and_state():
    assert [thing.name for thing in scene(DOORS).things] == [
        "red locked door 1",
        "red open door 1",
        "blue locked door 1",
        "red closed door 1",
        "red closed door 2",
    ]


def test_where_nothing_is_in_view_that_is_said():
    nothing = "\n".join([" ".join(["??"] * 7)] * 6 + [r".. .. .. /\ .. .. .."])
    assert description(scene(nothing, carried="Kb")) == (
        "You cannot see any objects within sight.The room has walls around you. "
        "You are carrying a blue key."
    )


def test_walls_alone_are_objects_in_sight_that_are_not_listed():
    walls = "\n".join([" ".join(["##"] * 7)] * 6 + [r".. .. .. /\ .. .. .."])
    assert description(scene(walls)) == (
        "In front of you in this room, you can see several objects: "
        "The room has walls around you. You are facing a wall 1 steps away. "
        "You are not carrying anything."
    )


def test_actions_are_listed_in_the_order_of_agentgym():
    drawing = r"""
        ## ## ## ## ## ## ##
        ## .. .. .. .. .. ##
        ## .. .. .. .. .. ##
        ## .. .. .. .. .. ##
        _e .. Oy .. .. .. ##
        ## .. .. Dp .. .. ##
        ## .. .. /\ .. .. ##
    """
    assert available_actions(scene(drawing)) == [
        "turn left",
        "turn right",
        "move forward",
        "pickup yellow ball 1",
        "toggle and go through purple closed door 1",
        "toggle",
        "go through grey open door 1",
        "go to purple closed door 1",
        "go to yellow ball 1",
        "go to grey open door 1",
        "check available actions",
    ]
    assert available_actions(scene(drawing, carried="Be"))[2:5] == [
        "move forward",
        "drop",
        "toggle and go through purple closed door 1",
    ]


def in_front(token):
    """A small room with one thing in front of the agent."""
    walls = "## ## ## ## ## ## ##\n" * 5
    return f"{walls}## .. .. {token} .. .. ##\n## .. .. /\\ .. .. ##"


@pytest.mark.parametrize(
    ("token", "carried", "toggles"),
    [
        ("Dg", "", True),
        ("_g", "", True),
        ("Bg", "", True),
        ("Lg", "", False),
        ("Lg", "Kr", False),
        ("Lg", "Og", False),
        ("Lg", "Kg", True),
        ("Og", "", False),
        ("..", "", False),
        ("##", "", False),
    ],
)
def test_toggle_is_offered_at_doors_that_can_be_opened_or_closed_and_at_boxes(
    token, carried, toggles
):
    assert ("toggle" in scene(in_front(token), carried).options) == toggles


@pytest.mark.parametrize(
    ("token", "carried", "command", "refusal"),
    [
        ("##", "", "move forward", "There is a barrier in front of you, you can't move forward."),
        ("Bg", "", "move forward", "There is a barrier in front of you, you can't move forward."),
        ("..", "", "drop", "You cannot drop the object, as you are not carrying anything."),
        (
            "Og",
            "Kr",
            "drop",
            "You cannot drop the object, as there is already an object in front of you.",
        ),
        (
            "Dg",
            "",
            "go through green closed door 1",
            "You cannot go through green closed door 1, as it is closed. "
            "You should toggle it first.",
        ),
        (
            "Lg",
            "Og",
            "toggle and go through green locked door 1",
            "You cannot toggle and go through green locked door 1, as you are not carrying a key.",
        ),
        (
            "Lg",
            "Kr",
            "toggle and go through green locked door 1",
            "You cannot toggle and go through green locked door 1, as the color of the key you "
            "are carrying does not match the color of door.",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_for_the_reason_that_agentgym_gives(
    token, carried, command, refusal
):
    found = scene(in_front(token), carried)
    assert command not in found.options
    assert found.refusals[command] == refusal


BEHIND_BOXES = r"""
    ## ## ## ## ## ## ##
    .. .. ## Or ## .. Or
    .. .. .. Bg .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. .. .. .. ..
    .. .. .. /\ .. .. ..
"""


def test_things_without_a_way_to_them_keep_their_number_and_are_refused():
    found = scene(BEHIND_BOXES)
    assert [thing.name for thing in found.things] == ["green box 1", "red ball 1", "red ball 2"]
    for verb in ("go to", "pickup"):
        assert f"{verb} red ball 2" in found.options
        assert found.refusals[f"{verb} red ball 1"] == (
            f"You cannot {verb} red ball 1, as there is no path leading to it."
        )


def test_a_walk_ends_facing_the_thing_and_then_does_what_was_asked():
    found = scene(ROOM)
    right_ball = [RIGHT, PICK_UP]
    box = [FORWARD, PICK_UP]
    right_key = [FORWARD, RIGHT, FORWARD, PICK_UP]
    assert found.primitives("pickup red ball 1") == right_ball
    assert found.primitives("pickup green box 1") == box
    assert found.primitives("pickup grey key 1") == right_key
    assert found.primitives("go to grey key 1") == right_key[:-1]


def test_going_through_a_door_ends_in_the_doorway():
    found = scene(DOORS, carried="Kr")
    assert found.primitives("go through red open door 1") == [LEFT, FORWARD, FORWARD, FORWARD]
    assert found.primitives("toggle and go through red locked door 1") == [
        FORWARD,
        FORWARD,
        TOGGLE,
        FORWARD,
    ]


def test_to_go_where_one_is_needs_no_primitive():
    assert scene(in_front("Og")).primitives("go to green ball 1") == []


ONLY_FROM_BEHIND = r"""
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ?? ?? ?? ?? ?? ?? ??
    ## ## ## ## ## ## ##
    ?? Oy ## /\ ## ## ##
"""


@pytest.mark.parametrize(
    ("heading", "offered"), [(EAST, True), (SOUTH, True), (WEST, False), (NORTH, False)]
)
def test_the_search_reaches_behind_the_agent_only_when_it_looks_east_or_south(heading, offered):
    found = scene(ONLY_FROM_BEHIND, heading=heading)
    assert ("go to yellow ball 1" in found.options) == offered


def overwritten_walk(view, heading, goal):
    """A second search: a plain queue of states in which predecessors are overwritten while a
    state waits, and every copy of a waiting state is expanded again."""
    steps = [(1, 0), (0, 1), (-1, 0), (0, -1)]
    rows = range(-1 if heading in (EAST, SOUTH) else 0, 7)
    columns = range(-3, 5 if heading in (SOUTH, WEST) else 4)

    def free(ahead, right):
        if ahead not in rows or right not in columns:
            return False
        if ahead < 0 or right > 3:
            return True
        return view[7 * ahead + right + 3] >> 3 not in (1, 5, 6, 7)

    start = (0, 0, 0)
    before, expanded, queue = {}, set(), [start]
    while queue:
        state = queue.pop(0)
        expanded.add(state)
        ahead, right, turn = state
        if (ahead + steps[turn][0], right + steps[turn][1]) == goal:
            walk = []
            while state != start:
                state, primitive = before[state]
                walk.insert(0, primitive)
            return walk
        front = (ahead + steps[turn][0], right + steps[turn][1], turn)
        left, turned_right = (ahead, right, (turn - 1) % 4), (ahead, right, (turn + 1) % 4)
        for found, primitive in ((front, FORWARD), (left, LEFT), (turned_right, RIGHT)):
            if found not in expanded and free(found[0], found[1]):
                before[found] = (state, primitive)
                queue.append(found)
    return None


@pytest.mark.parametrize("heading", range(4))
def test_walks_are_those_of_a_queue_that_overwrites_predecessors(heading):
    rng = random.Random(heading)
    num_walks = 0
    for _ in range(12):
        drawn = rng.choices(
            [EMPTY, UNSEEN, WALL_CODE, code("Kg"), code("Dr")], [70, 8, 8, 8, 6], k=49
        )
        drawn[3] = EMPTY
        view = bytes(drawn)
        ways = Ways(view, heading)
        for place in range(49):
            end = ways.facing(place)
            walk = None if end is None else ways.walk(end)
            assert walk == overwritten_walk(view, heading, (place // 7, place % 7 - 3))
            num_walks += walk is not None
    assert num_walks > 300
    assert ways.walk(START) == []


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
    env.reset(options={"task": 4})
    command = next(c for c in parts(env.step("turn left")[0])[1] if c.startswith("go to"))
    target = command.removeprefix("go to ")
    assert "No change" not in env.step(command)[0]
    facing = env.unwrapped.world.front
    name = target.rpartition(" ")[0]
    assert Scene(env.unwrapped.world.view().cells, 0, 0).things[0].name == f"{name} 1"
    observation, _, _, _, info = env.step(f"go to {name} 1")
    assert parts(observation)[0] == "No change in state."
    assert info["action_valid"]
    assert env.unwrapped.world.front == facing


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


def walk_to(env, observation, prefix):
    """Turn until an action with this prefix is listed, then do it."""
    for _ in range(4):
        command = next((c for c in parts(observation)[1] if c.startswith(prefix)), None)
        if command:
            return env.step(command)
        observation = env.step("turn right")[0]
    raise AssertionError(f"no {prefix} in {observation}")


def test_success_is_paid_once_and_ends_the_episode():
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


def test_a_walk_stops_where_the_mission_is_decided():
    env = make()
    observation, _ = env.reset(options={"task": 1})
    assert walk_to(env, observation, "pickup red ball")[2]
    assert env.unwrapped.world.carried == 0


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
        listed = [parts(text)[1] for text in [episode.first_observation, *observations(episode)]]
        for turn, actions in zip(episode.turns, listed, strict=False):
            assert turn.reply in actions


def observations(episode):
    return [turn.observation for turn in episode.turns]


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
            assert env.unwrapped.render_command(oracle.reply("", {}))
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
    testing.check_text_env(
        functools.partial(gymnasium.make, "AgentGym/BabyAI-v0", **arguments), checks
    )
