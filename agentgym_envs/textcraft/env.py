"""`TextCraftEnv`: fetching and crafting as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from agentgym_envs import arguments
from agentgym_envs.actions import Command, Grammar
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidTask, UnknownName
from agentgym_envs.outcomes import Outcome, RewardFunction
from agentgym_envs.policies import PlannedPolicy
from agentgym_envs.tasks import Task, TaskSet
from agentgym_envs.textcraft.dialect import Dialect, own_dialect
from agentgym_envs.textcraft.families import HOLDOUTS
from agentgym_envs.textcraft.observation import picture, shown_recipes
from agentgym_envs.textcraft.oracle import TextCraftOracle
from agentgym_envs.textcraft.reward import REWARDS, score
from agentgym_envs.textcraft.tasks import DIGEST_LENGTH, FAMILY, BookTasks
from agentgym_envs.textcraft.trees import needs
from agentgym_envs.textcraft.world import TextCraftWorld
from agentgym_envs.vector import vector_factory

if TYPE_CHECKING:
    from agentgym_envs.policies import Policy


class TextCraftEnv(TextEnv):
    """Items to fetch and to craft by recipes, and one of them as the goal.

    ## Description

    The crafting recipes of a game of blocks as a text world, after TextCraft (arXiv 2311.05772).
    The agent has an inventory, empty at first. What no recipe makes it fetches; everything else it
    crafts, from the bottom of the goal's recipe tree to its top.

    ## Action Space

    Any text; it should be one command: ``get 3 oak log``, ``craft 4 oak planks using 1 oak log``,
    ``inventory``. A craft takes exactly the ingredients of a recipe, or of several crafts at once;
    for a kind (planks) it takes members of the kind in any mixture. Names may be in the plural. A
    command that cannot be done costs a turn, changes nothing, and is answered by the reason and by
    what would do.

    ## Observation Space

    Text. The first observation states the goal, the recipes of its tree in random order with some
    others mixed in, and the members of the kinds that they take; later ones what was done.

    ## Starting State

    A task fixes the goal and everything that is told, by a seed of its own. Task ids are
    ``textcraft/<split>/<item>``; splits are made by family of goals, so colors and woods of one
    thing are in one split. All goals of the package's own recipes were solved by the oracle.
    AgentGym's item id ``textcraft_<n>`` is the goal that the item's own text states, or else goal
    n of its goals in the order of sorted recipe files.

    ## Rewards

    ``"default"``: 1 in the turn that makes the goal. With ``partial_credit`` the score, and the
    return with it, grows with the share of the goal's recipe tree that has been crafted.

    ## Episode End

    Terminated when the goal is crafted; truncated at the horizon. By default it is twice the turns
    of the shortest plan, plus 5, and at least 15.

    ## Information

    On request (``info_keys``): ``admissible`` (the gets and crafts that the told recipes suggest;
    other amounts are done too), ``state_key``, ``inventory`` (amounts by item) and ``depth`` (of
    the goal).

    ## Arguments

    Besides those of `TextEnv`:

    - ``recipes_dir``: a folder of the game's own recipe files, to be played instead of the
      package's recipes (version 1.16.5).
    - ``minecraft_version``: another version's recipes; needs the extra ``textcraft_versions``.
    - ``num_distractors``: how many recipes that the goal does not need are told. Default 10.
    - ``partial_credit``: whether the crafts on the way to the goal raise the score. Default False.
    - ``holdout``: what dev and test hold that train does not: ``"families"`` of goals, or
      ``"variants"``, new pairs of a known thing and a known color, wood or material. Their ids are
      ``textcraft/<split>/variants/<item>``. Default ``"families"``.
    - ``max_depth``: deeper goals are left out of the task set; named ones can still be played.
    - ``compat="agentgym"``: AgentGym's texts, rules and task indices.

    ## Version History

    - v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}
    family = FAMILY
    version = "0"
    capabilities = frozenset({"clone", "oracle", "admissible", "state_key"})
    rewards: ClassVar[Mapping[str, RewardFunction]] = REWARDS
    compat_modes = ("agentgym",)
    extra_info_keys: ClassVar[Mapping[str, type]] = {"inventory": dict, "depth": int}
    agentgym_name = "textcraft"

    def __init__(
        self,
        *,
        recipes_dir: str | None = None,
        minecraft_version: str | None = None,
        num_distractors: int = 10,
        partial_credit: bool = False,
        holdout: str = "families",
        max_depth: int | None = None,
        **shared: Any,
    ) -> None:
        """Make the environment; recipes are read, and read again only if they have changed.

        Raises:
            InvalidTask: the recipe folder cannot be used; the text names the file.
            UnknownName: there are no recipes of this version, or no such rule of splits.
            Unsupported: recipes of other versions need a package that is not installed.
            TypeError, ValueError: an argument of another kind, or both sources of recipes.
        """
        super().__init__(**shared)
        self._num_distractors = arguments.whole_number("num_distractors", num_distractors, least=0)
        self._partial_credit = arguments.flag("partial_credit", partial_credit)
        self._holdout = arguments.one_of("holdout", holdout, HOLDOUTS)
        if max_depth is not None:
            max_depth = arguments.whole_number("max_depth", max_depth, least=1)
        self._max_depth = max_depth
        for name, value in (("recipes_dir", recipes_dir), ("minecraft_version", minecraft_version)):
            if not isinstance(value, str | None):
                raise TypeError(f"{name} must be a text or None, got {value!r}")
        if recipes_dir is not None and minecraft_version is not None:
            raise ValueError("recipes_dir brings its own recipes; leave minecraft_version out")
        self._recipes = (recipes_dir, minecraft_version)
        self._dialect = self._choose_dialect()
        self._world = TextCraftWorld(self._dialect.book, "")

    @property
    def world(self) -> TextCraftWorld:
        """The world being played."""
        return self._world

    def _choose_dialect(self) -> Dialect:
        if self.compat is None:
            return own_dialect(*self._recipes)
        from agentgym_envs.textcraft.compat import agentgym_dialect

        return agentgym_dialect(*self._recipes)

    # ----------------------------------------------------------------------------------- tasks

    def _load_tasks(self) -> TaskSet:
        return self._all_tasks().of_split(self.split, self._max_depth)

    def _all_tasks(self) -> BookTasks:
        tasks = self._dialect.tasks()
        return tasks.by_variants if self._holdout == "variants" else tasks

    def _resolve_task(self, name: str | int) -> Task:
        if isinstance(name, str):
            return self._all_tasks().of_id(name)
        if self._dialect.goal_of_index is None:
            return self.tasks[name]
        return self._all_tasks().of_goal(self._dialect.goal_of_index(name))

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        return self._all_tasks().of_id(task_id)

    def _resolve_item(self, item: AgentGymItem) -> Task:
        from agentgym_envs.textcraft.compat import agentgym_book, goal_of_index, goal_of_item

        goal = goal_of_item(item) or goal_of_index(agentgym_book(*self._recipes), item.number)
        if goal in self._dialect.book.base:
            raise InvalidTask(f"{item.id!r} asks for {goal!r}, which is fetched here, not crafted")
        try:
            return self._all_tasks().of_goal(goal)
        except UnknownName as error:
            raise InvalidTask(f"{item.id!r} asks for {goal!r}: {error}") from None

    # ------------------------------------------------------------------------------------ play

    def _make_grammar(self) -> Grammar:
        return self._dialect.grammar

    def _rules(self) -> str:
        return self._dialect.rules()

    def _begin(self, task: Task) -> str:
        self._world = self._world_of(task)
        return self._dialect.first(self._world, task.goal)

    def _world_of(self, task: Task) -> TextCraftWorld:
        book, goal = self._dialect.book, task.payload.get("item")
        if goal not in book.goals or task.goal != f"craft {goal}" or task.seed is None:
            raise InvalidTask(
                f"task {task.id!r} needs a seed and a payload with an item that can be crafted, "
                f"its goal must be to craft it; got goal {task.goal!r}, item {goal!r}"
            )
        digest = book.digest[:DIGEST_LENGTH]
        if task.payload.get("book", digest) != digest:
            raise InvalidTask(
                f"task {task.id!r} is of other recipes: {task.payload['book']} instead of {digest}"
            )
        return TextCraftWorld(
            book,
            goal,
            shown=shown_recipes(book, goal, seed=task.seed, num_distractors=self._num_distractors),
            needs=needs(book, goal) if self._partial_credit else (),
        )

    def _execute(self, command: Command) -> Outcome:
        observation = command.verb.run(self._world, **command.arguments)
        if self._world.is_done:
            return Outcome.succeeded(observation)
        return Outcome.running(observation, score(self._world))

    def _admissible(self) -> list[str]:
        return self._dialect.admissible(self._world)

    def _state_key(self) -> str:
        return self._world.state_key()

    def _extra_info(self) -> dict[str, Any]:
        world = self._world
        inventory = dict(sorted(world.inventory.items()))
        return {"inventory": inventory, "depth": world.book.depth[world.goal]}

    def _save_world(self) -> Any:
        return self._world.to_json()

    def _load_world(self, task: Task, state: Any) -> None:
        world = self._world_of(task)
        world.load_json(state)
        self._world = world

    def _origin(self) -> dict[str, str]:
        return super()._origin() | {"recipes": self._dialect.book.digest}

    def _make_oracle(self) -> Policy:
        oracle = TextCraftOracle(self, self._dialect.planner())
        return PlannedPolicy(oracle.next_command, self.render_command)

    def _render_ansi(self) -> str:
        return picture(self._world)


make_vector = vector_factory("AgentGym/TextCraft-v0")
