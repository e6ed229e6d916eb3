"""`BabyAIEnv`: BabyAI's levels as text worlds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from agentgym_envs.actions import Command, Grammar
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.babyai.ansi import picture
from agentgym_envs.babyai.dialect import Dialect, own_dialect
from agentgym_envs.babyai.levels import resolve_levels
from agentgym_envs.babyai.reward import REWARDS
from agentgym_envs.babyai.tasks import (
    ANY,
    DIGEST_LENGTH,
    FAMILY,
    certified_task,
    certified_task_of_world,
    certified_tasks,
    parse_task_id,
    uncertified_task,
)
from agentgym_envs.babyai.world import BabyAIWorld
from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError, EnvFault, InvalidState, InvalidTask
from agentgym_envs.outcomes import Outcome, RewardFunction
from agentgym_envs.policies import PlannedPolicy
from agentgym_envs.tasks import Task, TaskSet
from agentgym_envs.vector import vector_factory

if TYPE_CHECKING:
    from agentgym_envs.policies import Policy


class BabyAIEnv(TextEnv):
    """Rooms with balls, boxes, keys and doors, and a goal in a small language.

    ## Description

    The levels of BabyAI (arXiv 1810.08272) in minigrid's implementation: grids of one to nine
    rooms, and missions such as "open a red door and go to the ball on your left after you put the
    grey ball next to a door". The agent sees what lies ahead of it and is told so in text.

    ## Action Space

    Any text; it should be one command. With ``action_mode="high"``: go to, pick up, put next to,
    drop, open, toggle, go through, toggle and go through, turn left, turn right, move forward.
    Commands with a target walk there through the cells in view. With ``action_mode="low"`` the
    six primitives: turn left, turn right, move forward, pick up, drop, toggle. A command that
    cannot be done costs a turn, changes nothing, and is answered by the reason.

    ## Observation Space

    Text: the things in view with their places, walls, and what is carried; the first observation
    also states the goal, verbatim. The view is minigrid's: 7x7 cells ahead of the agent, minus
    what walls and closed doors hide. Things keep their names (``red ball 1``) for the episode;
    they are numbered by color and type in the order in which they are first seen.

    ## Starting State

    A task fixes level and world seed, and with them everything. Task ids are
    ``babyai/<split>/<level>/<seed>`` for certified tasks, which the oracle has solved, and
    ``babyai/any/<level>/<seed>`` for any world. Splits are made by layout. AgentGym's item id
    ``babyai_<n>`` is the world of level ``n % 40 + 1`` of its list and seed ``n // 40``, and names
    the certified task where there is one, of whatever split.

    ## Rewards

    ``"default"``: 1 in the turn that reaches the goal. ``"time_discounted"``: then
    ``1 - 0.9 * turn / horizon``. Score and success are 1 and True when the goal is reached.

    ## Episode End

    Terminated when the mission is accomplished, or has failed (a few levels forbid mistakes);
    truncated at the horizon. By default it is twice the turns that the oracle needs, plus 5, with
    seven times these turns for ``action_mode="low"`` and twice for ``compat="agentgym"``; tasks
    that are not certified take minigrid's own step limit as a measure, which ends nothing itself.

    ## Information

    On request (``info_keys``): ``admissible``, ``state_key``, ``mission`` (the goal, verbatim) and
    ``level``.

    ## Arguments

    Besides those of `TextEnv`:

    - ``levels``: a level (``"GoToRedBall"``), a suite (``"agentgym"``, ``"all"``, ``"redball"``,
      ``"single_room"``), or a list of both. Default ``"agentgym"``: AgentGym's 40 levels.
    - ``action_mode``: ``"high"`` (default) or ``"low"``.
    - ``obs_style``: ``"text"`` (default) or ``"compact"``, which takes about a third of the words.
    - ``compat="agentgym"``: AgentGym's texts, actions and task indices.

    ## Version History

    - v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}
    family = FAMILY
    version = "0"
    capabilities = frozenset({"clone", "oracle", "admissible", "state_key"})
    rewards: ClassVar[Mapping[str, RewardFunction]] = REWARDS
    compat_modes = ("agentgym",)
    extra_info_keys: ClassVar[Mapping[str, type]] = {"mission": str, "level": str}
    agentgym_name = "babyai"

    def __init__(
        self,
        *,
        levels: str | Sequence[str] = "agentgym",
        action_mode: str = "high",
        obs_style: str = "text",
        **shared: Any,
    ) -> None:
        """Make the environment; nothing is built before the first `reset`.

        Raises:
            UnknownName: an unknown level, suite, mode or style.
            TypeError: levels that are neither a text nor a list of texts.
            ValueError: no levels, or a mode or style beside ``compat``.
        """
        super().__init__(**shared)
        self._levels = resolve_levels(levels)
        self._dialect = self._choose_dialect(action_mode, obs_style)
        self._world = BabyAIWorld()

    @property
    def world(self) -> BabyAIWorld:
        """The world being played."""
        return self._world

    def _choose_dialect(self, action_mode: str, obs_style: str) -> Dialect:
        if self.compat is None:
            return own_dialect(action_mode, obs_style)
        if (action_mode, obs_style) != ("high", "text"):
            raise ValueError(
                f"compat={self.compat!r} has its own actions and texts; "
                "leave action_mode and obs_style at their defaults"
            )
        from agentgym_envs.babyai.compat import agentgym_dialect

        return agentgym_dialect()

    # ----------------------------------------------------------------------------------- tasks

    def _load_tasks(self) -> TaskSet:
        return certified_tasks(self.split, self._levels, self._dialect.turns_factor)

    def _resolve_task(self, name: str | int) -> Task:
        if isinstance(name, str):
            return self._named(name, self._world)
        if self._dialect.world_of_index is None:
            return self.tasks[name]
        return self._uncertified(*self._dialect.world_of_index(name), self._world)

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        return self._named(task_id, BabyAIWorld())  # an episode may be running in self._world

    def _resolve_item(self, item: AgentGymItem) -> Task:
        from agentgym_envs.babyai.compat import world_of_index

        level, seed = world_of_index(item.number)
        certified = certified_task_of_world(level, seed, self._dialect.turns_factor)
        return certified or self._uncertified(level, seed, BabyAIWorld())

    def _named(self, task_id: str, world: BabyAIWorld) -> Task:
        name = parse_task_id(task_id)
        if name.split == ANY:
            return self._uncertified(name.level, name.seed, world)
        return certified_task(name, self._dialect.turns_factor)

    def _uncertified(self, level: str, seed: int, world: BabyAIWorld) -> Task:
        world.reset(level, seed)
        return uncertified_task(
            level, seed, world.mission, world.max_steps, self._dialect.turns_factor
        )

    # ----------------------------------------------------------------------------------- play

    def _make_grammar(self) -> Grammar:
        return Grammar(self._dialect.verbs)

    def _rules(self) -> str:
        return self._dialect.rules()

    def _begin(self, task: Task) -> str:
        world = self._world
        if not isinstance(task.payload.get("level"), str) or task.seed is None:
            raise InvalidTask(f"task {task.id!r} needs a seed and a payload with a level")
        world.reset(task.payload["level"], task.seed)
        expected = task.payload.get("digest", world.layout[:DIGEST_LENGTH])
        if not world.layout.startswith(expected) or task.goal != world.mission:
            raise EnvFault(
                f"{task.id}: this version of minigrid builds another world than the manifest "
                f"expects: layout {world.layout[:DIGEST_LENGTH]} instead of {expected}, "
                f"mission {world.mission!r} instead of {task.goal!r}",
                retryable=False,
            )
        return self._dialect.first(world)

    def _execute(self, command: Command) -> Outcome:
        world = self._world
        note = command.verb.run(world, **command.arguments)
        observation = self._dialect.observe(world, note)
        if world.status is EndReason.SUCCESS:
            return Outcome.succeeded(observation)
        if world.status is EndReason.FAILURE:
            return Outcome.failed(observation)
        return Outcome.running(observation)

    def _refuse(self, error: CommandError) -> str:
        return self._dialect.refuse(self._world, error)

    def _admissible(self) -> list[str]:
        return self._dialect.admissible(self._world)

    def _state_key(self) -> str:
        return self._world.state_key()

    def _extra_info(self) -> dict[str, Any]:
        return {"mission": self._world.mission, "level": self._world.level}

    def _save_world(self) -> Any:
        return self._world.to_json()

    def _load_world(self, task: Task, state: Any) -> None:
        if (state["level"], state["seed"]) != (task.payload["level"], task.seed):
            raise InvalidState(f"the state is not of a world of task {task.id!r}")
        world = BabyAIWorld()
        world.load_json(state)
        self._world = world

    def _make_oracle(self) -> Policy:
        return PlannedPolicy(self._dialect.oracle(self).next_command, self.render_command)

    def _render_ansi(self) -> str:
        return picture(self._world)

    def _render_rgb_array(self) -> np.ndarray:
        frame: np.ndarray = self._world.minigrid.get_frame()
        return frame


make_vector = vector_factory("AgentGym/BabyAI-v0")
