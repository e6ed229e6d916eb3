import itertools
import random
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentgym_envs.actions import Grammar
from agentgym_envs.errors import NoPlan, UnknownName
from agentgym_envs.textcraft.actions import VERBS
from agentgym_envs.textcraft.planner import Planner, Step, planner_of
from agentgym_envs.textcraft.recipes import Ingredient, Recipe, RecipeBook, default_book
from agentgym_envs.textcraft.ways import MAX_WAYS, WayFinder, minimal
from agentgym_envs.textcraft.world import TextCraftWorld

GRAMMAR = Grammar(VERBS)
BOOK = default_book()


def recipe(output, count, **taken):
    ingredients = (Ingredient(name.replace("_", " "), n) for name, n in taken.items())
    return Recipe(output, count, tuple(ingredients))


def book(*recipes, kinds=None, base=()):
    return RecipeBook("by hand", recipes, kinds=kinds or {}, base=base)


def play(book, plan, inventory=(), goal=None):
    """What is there after a plan has been played in the world itself; refusals raise."""
    world = TextCraftWorld(book, goal or plan[-1].item)
    world.inventory = dict(inventory)
    for step in plan:
        command = GRAMMAR.parse(step.text)
        assert command.text == step.text
        command.verb.run(world, **command.arguments)
    return world.inventory


def texts(plan):
    return [step.text for step in plan]


# ------------------------------------------------------------------------------------- the plans


def test_amounts_are_fetched_at_once_and_crafts_are_merged():
    assert texts(Planner(BOOK).plan("netherite block")) == [
        "get 36 gold ingot",
        "get 36 netherite scrap",
        "craft 9 netherite ingot using 36 gold ingot, 36 netherite scrap",
        "craft 1 netherite block using 9 netherite ingot",
    ]


def test_yields_are_rounded_up():
    assert texts(Planner(BOOK).plan("bookshelf")) == [
        "get 2 acacia log",
        "get 12 rabbit hide",
        "get 9 sugar cane",
        "craft 8 acacia planks using 2 acacia log",
        "craft 3 leather using 12 rabbit hide",
        "craft 9 paper using 9 sugar cane",
        "craft 3 book using 3 leather, 9 paper",
        "craft 1 bookshelf using 6 acacia planks, 3 book",
    ]


def test_what_two_ingredients_need_is_shared():
    """A frame takes an oak plank by name and four of any planks: oak ones will do for both."""
    found = book(
        recipe("oak planks", 4, oak_log=1),
        recipe("birch planks", 4, birch_log=1),
        recipe("frame", 1, oak_planks=1, planks=4),
        kinds={"planks": ["birch planks", "oak planks"]},
        base=["oak log", "birch log"],
    )
    assert texts(Planner(found).plan("frame")) == [
        "get 2 oak log",
        "craft 8 oak planks using 2 oak log",
        "craft 1 frame using 5 oak planks",
    ]


def test_a_deeper_recipe_wins_if_it_shares_more():
    """The shallow way to a lamp takes five things, the deep one four: depth is not length."""
    found = book(
        recipe("lamp", 1, red=1, blue=1, green=1, glue=1),
        recipe("lamp", 1, cord=1, plug=1),
        recipe("cord", 1, copper=1),
        recipe("plug", 1, cord=1, copper=1),
        base=["red", "blue", "green", "glue", "copper"],
    )
    assert found.depth["lamp"] == 1
    assert texts(Planner(found).plan("lamp")) == [
        "get 3 copper",
        "craft 2 cord using 2 copper",
        "craft 1 plug using 1 copper, 1 cord",
        "craft 1 lamp using 1 cord, 1 plug",
    ]


def test_recipes_that_go_round_in_circles_are_not_followed():
    found = book(
        recipe("ingot", 9, block=1),
        recipe("block", 1, ingot=9),
        recipe("ingot", 1, ore=2),
        base=["ore"],
    )
    assert texts(Planner(found).plan("block")) == [
        "get 18 ore",
        "craft 9 ingot using 18 ore",
        "craft 1 block using 9 ingot",
    ]


def test_what_can_be_fetched_is_fetched_though_a_recipe_makes_it():
    assert texts(Planner(BOOK).plan("iron ingot")) == ["get 1 iron ingot"]


def test_amounts_past_the_limit_take_several_commands():
    found = book(recipe("a", 1, b=64), recipe("b", 1, c=64), base=["c"])
    hundred = book(recipe("goal", 1, a=2), *found.recipes, base=["c"])
    plan = Planner(hundred).plan("goal")
    assert sum(step.amount for step in plan if step.item == "c") == 2 * 64 * 64
    assert len(plan) == 2 + 2 + 1 + 1
    assert play(hundred, plan) == {"goal": 1}


def test_plans_without_end_are_refused():
    recipes = [recipe(f"i{n}", 1, **{f"i{n + 1}": 4096}) for n in range(3)]
    found = book(*recipes, base=["i3"])
    with pytest.raises(NoPlan, match="the plan is longer than 10000 commands"):
        Planner(found).plan("i0")


def test_what_cannot_be_had_has_no_plan():
    found = book(recipe("a", 1, b=1), recipe("b", 1, a=1), base=["c"])
    with pytest.raises(NoPlan, match="a can be neither fetched nor made"):
        Planner(found).plan("a")
    with pytest.raises(NoPlan, match="iron bars is in the inventory already"):
        Planner(BOOK).plan("iron bars", {"iron bars": 1})
    with pytest.raises(UnknownName, match="did you mean 'iron bars'"):
        Planner(BOOK).plan("iron bar")


# ---------------------------------------------------------------------------- all goals, in play


@pytest.fixture(scope="module")
def plans():
    planner = Planner(BOOK)
    return {goal: planner.plan(goal) for goal in BOOK.goals}


def test_every_plan_makes_its_goal(plans):
    for goal, plan in plans.items():
        assert play(BOOK, plan)[goal] >= 1


def test_plans_have_one_command_an_item(plans):
    for plan in plans.values():
        assert len({step.item for step in plan}) == len(plan)


def test_lengths_by_depth(plans):
    by_depth = {
        depth: [len(plan) for goal, plan in plans.items() if BOOK.depth[goal] == depth]
        for depth in (1, 2, 3, 4)
    }
    assert {depth: max(lengths) for depth, lengths in by_depth.items()} == {
        1: 4,
        2: 6,
        3: 11,
        4: 11,
    }
    means = {depth: sum(lengths) / len(lengths) for depth, lengths in by_depth.items()}
    assert means == pytest.approx({1: 2.1875, 2: 3.8429, 3: 6.5431, 4: 8.2727}, abs=1e-4)


def test_plans_are_never_longer_than_the_longest_ones_known_of_the_original(plans):
    """Single crafts took 48 commands for the block of netherite and 36 for the anvil."""
    single = Planner(BOOK, single_crafts=True)
    assert len(plans["netherite block"]) == 4
    assert len(plans["anvil"]) == 3
    assert single.num_steps("netherite block") == 12
    assert single.num_steps("anvil") == 5


def test_from_every_state_of_a_plan_the_rest_of_it_is_found(plans):
    planner = Planner(BOOK)
    for goal in BOOK.goals[::9]:
        for done in range(1, len(plans[goal])):
            inventory = play(BOOK, plans[goal][:done])
            rest = planner.plan(goal, inventory)
            assert len(rest) == len(plans[goal]) - done
            assert play(BOOK, rest, inventory)[goal] >= 1


def test_from_any_state_a_plan_is_found_that_works_and_is_not_longer_than_a_new_start():
    rng = random.Random(0)
    planner = Planner(BOOK)
    for goal in rng.sample(BOOK.goals, 60):
        items = sorted({step.item for step in planner.plan(goal)} - {goal})
        held = {item: rng.randrange(1, 7) for item in rng.sample(items, rng.randrange(len(items)))}
        held |= {item: rng.randrange(1, 9) for item in rng.sample(BOOK.items, 5) if item != goal}
        plan = planner.plan(goal, held)
        assert play(BOOK, plan, held)[goal] >= 1
        assert len(plan) <= planner.num_steps(goal)


def test_kinds_are_filled_up_from_what_is_there():
    held = {"oak planks": 3, "birch planks": 4, "spruce planks": 2}
    (step,) = Planner(BOOK).plan("chest", held)
    assert step.text == "craft 1 chest using 4 birch planks, 3 oak planks, 1 spruce planks"


def test_what_is_there_is_used_before_more_is_made():
    assert texts(Planner(BOOK).plan("iron pickaxe", {"oak planks": 1, "stick": 1})) == [
        "get 2 bamboo",
        "get 3 iron ingot",
        "craft 1 stick using 2 bamboo",
        "craft 1 iron pickaxe using 3 iron ingot, 2 stick",
    ]


def test_an_item_that_fits_two_ingredients_is_dealt_out_to_both():
    found = book(
        recipe("post", 1, hard=1, light=4),
        kinds={"hard": ["elm", "oak"], "light": ["ash", "oak"]},
        base=["ash", "elm", "oak"],
    )
    held = {"oak": 4, "elm": 1}
    plan = Planner(found).plan("post", held)
    assert play(found, plan, held)["post"] == 1


# ----------------------------------------------------------------------------------- single crafts


def test_single_crafts_make_one_yield_each_of_one_member_a_kind():
    planner = Planner(BOOK, single_crafts=True)
    for goal in BOOK.goals:
        plan = planner.plan(goal)
        assert play(BOOK, plan)[goal] >= 1
        for step in plan:
            if step.ingredients:
                yields = {entry.count for entry in BOOK.recipes_of(step.item)}
                assert step.amount in yields
                assert_one_member_a_kind(step)


def test_single_crafts_do_not_mix_what_is_there():
    planner = Planner(BOOK, single_crafts=True)
    plan = planner.plan("chest", {"oak planks": 3, "birch planks": 6})
    assert play(BOOK, plan, {"oak planks": 3, "birch planks": 6})["chest"] == 1
    for step in plan:
        assert_one_member_a_kind(step)


def assert_one_member_a_kind(step):
    fitting = [
        entry
        for entry in BOOK.recipes_of(step.item)
        if len(entry.ingredients) == len(step.ingredients)
        and all(
            any(part.name in BOOK.members(need.name) for part in step.ingredients)
            for need in entry.ingredients
        )
    ]
    assert not step.ingredients or fitting, step.text


def test_single_crafts_prefer_fewer_commands_to_fewer_items():
    """Sixteen sticks: eight crafts of bamboo, or four of planks and two of logs."""
    plan = Planner(BOOK, single_crafts=True).plan("painting")
    assert [step.item for step in plan].count("stick") == 2


# ------------------------------------------------------------- against a second implementation


def fewest_items(book, goal):
    """The size of the smallest set of items that holds all that its items are made of."""
    others = [item for item in book.items if item != goal]
    for size in range(len(others) + 1):
        for chosen in itertools.combinations(others, size):
            if goal in closure(book, {goal, *chosen}):
                return size + 1
    return None


def closure(book, allowed):
    """What of `allowed` can be had with nothing else."""
    had = set(book.base & allowed)
    while True:
        new = {
            entry.output
            for entry in book.recipes
            if entry.output in allowed - had
            and all(had & set(book.members(need.name)) for need in entry.ingredients)
        }
        if not new:
            return had
        had |= new


def random_book(rng):
    items = [f"i{number}" for number in range(rng.randrange(5, 11))]
    kinds = {"k0": rng.sample(items, 2), "k1": rng.sample(items, 3)}
    names = [*items, *kinds]
    recipes = []
    for _ in range(rng.randrange(4, 16)):
        taken = rng.sample(names, rng.randrange(1, 4))
        parts = tuple(Ingredient(name, rng.randrange(1, 5)) for name in taken)
        recipes.append(Recipe(rng.choice(items), rng.randrange(1, 4), parts))
    base = set(rng.sample(items, 2))
    base |= set(items) - {entry.output for entry in recipes}
    return RecipeBook("random", recipes, kinds=kinds, base=base)


def test_plans_for_random_books_are_the_shortest():
    rng = random.Random(1)
    lengths = Counter()
    for _ in range(150):
        found = random_book(rng)
        planner = Planner(found)
        for item in found.items:
            shortest = fewest_items(found, item)
            assert (item in found.depth) == (shortest is not None)
            if shortest is None:
                with pytest.raises(NoPlan):
                    planner.plan(item)
                continue
            plan = planner.plan(item)
            assert len(plan) == shortest
            assert play(found, plan)[item] >= 1
            lengths[shortest] += 1
    assert {2, 3, 4, 5} <= lengths.keys()


def test_plans_for_random_books_work_from_any_inventory():
    rng = random.Random(2)
    for _ in range(150):
        found = random_book(rng)
        planner = Planner(found, single_crafts=rng.random() < 0.3)
        goal = rng.choice(list(found.depth))
        others = [item for item in found.items if item != goal]
        held = {item: rng.randrange(1, 9) for item in rng.sample(others, rng.randrange(1, 5))}
        plan = planner.plan(goal, held)
        assert play(found, plan, held)[goal] >= 1
        assert len(plan) <= planner.num_steps(goal)


def test_minimal_ways_contain_no_other():
    assert minimal([0b111, 0b011, 0b100, 0b011, 0b1010]) == (0b100, 0b011, 0b1010)
    assert len(minimal(1 << bit for bit in range(MAX_WAYS + 50))) == MAX_WAYS


def test_our_book_is_far_from_the_bound_on_ways():
    finder = WayFinder(BOOK)
    assert max(len(finder.ways(goal)) for goal in BOOK.goals) == 1088 < MAX_WAYS


def test_the_text_of_a_step():
    assert Step("oak log", 3).text == "get 3 oak log"
    parts = (Ingredient("oak planks", 2), Ingredient("stick", 1))
    assert Step("sign", 3, parts).text == "craft 3 sign using 2 oak planks, 1 stick"


def test_the_planner_of_a_book_is_made_once():
    again = RecipeBook.from_json(BOOK.to_json())
    assert planner_of(BOOK) is planner_of(again)
    assert planner_of(BOOK) is not planner_of(BOOK, single_crafts=True)
    assert planner_of(BOOK).plan("bookshelf") == Planner(BOOK).plan("bookshelf")


def test_threads_that_share_a_planner_get_the_plans_of_one_that_nobody_shares():
    goals = random.Random(3).sample(BOOK.goals, 60)
    alone = {goal: Planner(BOOK).plan(goal) for goal in goals}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        shared = Planner(BOOK)
        with ThreadPoolExecutor(4) as threads:
            plans = list(threads.map(shared.plan, goals))
    finally:
        sys.setswitchinterval(interval)
    assert dict(zip(goals, plans, strict=True)) == alone
