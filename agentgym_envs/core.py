"""`TextEnv`: the contract of every environment here, and all of it that families share.

A family says how a task becomes a world, what a command does to it, and how it looks; `TextEnv`
does the rest once: choosing the task, parsing replies, counting turns, ending at the horizon,
rewards, the `info` keys, saving and loading. One step reads from top to bottom in `step`.

Left out on purpose: `max_episode_steps` and Gymnasium's default wrappers (they forward no
attributes), and any clock (observations and infos depend on task, seed and actions alone).
"""

from __future__ import annotations

import abc
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import gymnasium
import numpy as np

from agentgym_envs import actions, arguments
from agentgym_envs.actions import Command, Grammar
from agentgym_envs.actions.tools import tool_schemas
from agentgym_envs.agentgym_ids import AgentGymItem, resolve_entry
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import (
    CommandError,
    FormatError,
    InvalidState,
    InvalidTask,
    UnknownName,
    Unsupported,
)
from agentgym_envs.outcomes import Outcome, RewardFunction, RewardInput, score_gain
from agentgym_envs.spaces import UnicodeText, to_utf8
from agentgym_envs.states import SavedState, digest_of
from agentgym_envs.task_files import TaskEntry, check_entries, entry_id, read_task_entries
from agentgym_envs.tasks import ListSource, Task, TaskSet, check_split

if TYPE_CHECKING:
    from agentgym_envs.policies import Policy

MAX_OBSERVATION = 1_000_000
MAX_REPLY = 1_000_000
MAX_REMEMBERED_REPLY = 200
"""Longest reply, in characters, whose command is remembered."""
MAX_REMEMBERED = 1_024
"""How many commands an environment remembers."""

INFO_TYPES: Mapping[str, type] = {
    "task_id": str,
    "turn": int,
    "score": float,
    "success": bool,
    "action_valid": bool,
    "format_errors": int,
    "end_reason": str,
}
"""The keys that every `info` has, with their types."""


class TextEnv(gymnasium.Env[str, str], abc.ABC):
    """A world of text. Subclasses are families; see the module docstring.

    All constructor arguments are keywords and JSON values, so a `gymnasium` spec round-trips.

    Args:
        split: ``"train"``, ``"dev"`` or ``"test"``.
        tasks: the tasks to draw from instead of the whole split: a `TaskSet`, a list of ids, or
            the path of a file of ids, see `agentgym_envs.task_files`. AgentGym's item ids are
            ids too.
        action_format: how replies carry commands, see `agentgym_envs.actions`.
        strict: take only replies that follow the format to the letter.
        horizon: most turns of an episode; None takes the task's hint.
        instructions_in_observation: put the rules before the first observation, for callers
            that have no system message.
        info_keys: extras to put into `info`: ``"admissible"``, ``"state_key"``, and the
            family's own.
        reward: name of one of the family's reward functions.
        compat: None, or the name of a system whose texts and rules are reproduced.
        render_mode: None or one of ``metadata["render_modes"]``.

    Raises:
        UnknownName: a name that does not exist, of an argument too.
        Unsupported: an extra that this family does not have.
        ValueError, TypeError: a value of another kind.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}

    family: ClassVar[str]
    """Name of the family, ``"babyai"``."""
    version: ClassVar[str]
    """Version of the rules; part of saved states."""
    capabilities: frozenset[str] = frozenset()
    """Any of ``"clone"``, ``"oracle"``, ``"admissible"``, ``"state_key"``."""
    rewards: ClassVar[Mapping[str, RewardFunction]] = {"default": score_gain}
    """Reward functions by name."""
    compat_modes: ClassVar[tuple[str, ...]] = ()
    """Names that `compat` may take."""
    extra_info_keys: ClassVar[Mapping[str, type]] = {}
    """The family's own keys for `info_keys`, with their types."""
    agentgym_name: ClassVar[str] = ""
    """How AgentGym's item ids name this family, ``"babyai"`` in ``babyai_17``; "" if not at all."""
    step_timeout_s: float = 60.0
    """Deadline of a step, in seconds, that vector workers keep unless told otherwise."""
    reset_timeout_s: float = 300.0
    """Deadline of a reset, in seconds, that vector workers keep unless told otherwise."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Remember the keyword arguments: saved states and `clone` need them."""
        env = super().__new__(cls)
        env._arguments = dict(kwargs)
        return env

    _arguments: dict[str, Any]

    def __init__(
        self,
        *,
        split: str = "train",
        tasks: TaskSet | Sequence[TaskEntry] | str | None = None,
        action_format: str = "command",
        strict: bool = False,
        horizon: int | None = None,
        instructions_in_observation: bool = False,
        info_keys: Sequence[str] = (),
        reward: str = "default",
        compat: str | None = None,
        render_mode: str | None = None,
        **unknown: Any,
    ) -> None:
        if unknown:
            kind = f"argument of {type(self).__name__}"
            raise UnknownName(kind, next(iter(unknown)), self._parameters())
        self.observation_space = UnicodeText(MAX_OBSERVATION)
        self.action_space = UnicodeText(MAX_REPLY)
        self.split = check_split(split)
        self.strict = arguments.flag("strict", strict)
        self.compat = arguments.one_of("compat", compat, (None, *self.compat_modes))
        self.render_mode = arguments.one_of(
            "render mode", render_mode, (None, *self.metadata["render_modes"])
        )
        self._reward = self.rewards[arguments.one_of("reward", reward, self.rewards)]
        self._format = actions.action_format(action_format)
        self._info_keys = self._check_info_keys(info_keys)
        self._instructions_in_observation = arguments.flag(
            "instructions_in_observation", instructions_in_observation
        )
        self._default_horizon = None if horizon is None else arguments.turns(horizon)
        self._tasks_argument = tasks
        self._task_set: TaskSet | None = None
        self._grammar: Grammar | None = None
        self._commands: dict[str, Command] = {}
        self._task: Task | None = None
        self._horizon = 0
        self._turn = 0
        self._score = 0.0
        self._format_errors = 0
        self._end_reason = EndReason.RUNNING

    # ------------------------------------------------------------------ what a family provides

    @abc.abstractmethod
    def _load_tasks(self) -> TaskSet:
        """All tasks of ``self.split`` under the constructor's arguments."""

    def _resolve_task(self, name: str | int) -> Task:
        """The task called `name`; families may know more names than the task set holds."""
        return self.tasks[name]

    def _resolve_item(self, item: AgentGymItem) -> Task:
        """The task that an item of AgentGym stands for, of whatever split.

        Raises:
            InvalidTask: it stands for none, or for which one is not known.
        """
        raise InvalidTask(f"{self.family} cannot find the task of {item.id!r}")

    @abc.abstractmethod
    def _make_grammar(self) -> Grammar:
        """The verbs of this world."""

    @abc.abstractmethod
    def _rules(self) -> str:
        """The rules of the world for the instructions.

        They name no commands and no way of writing them: the action format lists the verbs
        behind them, as it wants them written.
        """

    @abc.abstractmethod
    def _begin(self, task: Task) -> str:
        """Build the world of `task` and return the first observation, which holds the goal."""

    @abc.abstractmethod
    def _execute(self, command: Command) -> Outcome:
        """Do `command` in the world.

        Raises:
            CommandError: it cannot be done; the world is unchanged; the text is the observation.
        """

    def _refuse(self, error: CommandError) -> str:
        """The observation that answers a reply which could not be done."""
        return str(error)

    def _admissible(self) -> list[str]:
        """All commands that the world would carry out now, in a fixed order."""
        raise Unsupported(f"{self.family} cannot list admissible commands")

    def _state_key(self) -> str:
        """A hash of the world without turn, history and random state."""
        raise Unsupported(f"{self.family} has no state keys")

    def _extra_info(self) -> dict[str, Any]:
        """Values of `extra_info_keys`; only those in `info_keys` are used."""
        return {}

    def _save_world(self) -> Any:
        """The world as JSON values."""
        raise Unsupported(f"{self.family} cannot save its state on this backend")

    def _load_world(self, task: Task, state: Any) -> None:
        """Make the world what `_save_world` described; what cannot be read changes nothing."""
        raise Unsupported(f"{self.family} cannot load a state on this backend")

    def _make_oracle(self) -> Policy:
        """A policy that solves the current task from its current state."""
        raise Unsupported(f"{self.family} has no oracle on this backend")

    def _render_ansi(self) -> str:
        """The world for people, as text; by default what every family knows of an episode."""
        return f"{self.goal}\nturn {self._turn} of {self._horizon}, score {self._score:g}"

    def _render_rgb_array(self) -> np.ndarray:
        """The world for people, as a picture: uint8 (height, width, 3)."""
        raise Unsupported(f"{self.family} has no picture")

    # --------------------------------------------------------------------------- the contract

    @property
    def tasks(self) -> TaskSet:
        """The tasks that `reset` draws from."""
        if self._task_set is None:
            self._task_set = self._narrow(self._load_tasks(), self._tasks_argument)
        return self._task_set

    @property
    def task(self) -> Task:
        """The task being played.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        return self._require_task()

    @property
    def goal(self) -> str:
        """What the current task asks for, in words, as the first observation states it.

        Raises:
            ResetNeeded: before the first `reset`.
        """
        return self.task.goal

    @property
    def horizon(self) -> int:
        """Most turns of the episode being played, or 0 before the first `reset`."""
        return self._horizon

    @property
    def action_format(self) -> str:
        """Name of the action format."""
        return self._format.name

    @property
    def grammar(self) -> Grammar:
        """The verbs of this world."""
        if self._grammar is None:
            self._grammar = self._make_grammar()
        return self._grammar

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The verbs as the ``tools`` of OpenAI's chat API, for `action_format` ``"tools"``."""
        return tool_schemas(self.grammar)

    @property
    def instructions(self) -> str:
        """The rules of the world and of the action format, for the system message."""
        return f"{self._rules().strip()}\n\n{self._format.describe(self.grammar)}"

    @property
    def instructions_by_family(self) -> dict[str, str]:
        """The instructions for the tasks of each family that is played here."""
        return {self.family: self.instructions}

    def render_command(self, command: str, thought: str = "") -> str:
        """The reply that carries `command` in this environment's action format.

        Raises:
            CommandError: it is no command of the grammar.
        """
        return self._format.render(self.grammar.parse(command), thought)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode.

        Args:
            seed: seeds `np_random`, which draws the task and drives what randomness the family
                declares. The world itself is fixed by the task.
            options: ``task``: an id, an index into `tasks`, or a `Task`; ``horizon``: most turns
                of this episode; ``max_horizon``: a limit on the horizon, whoever chose it.

        Returns:
            The first observation, which holds the goal, and `info`.

        Raises:
            UnknownName: no such task or option.
            InvalidTask: a task that is not there or cannot be used.
            ValueError, TypeError: an option of another kind.
            EnvFault: the world could not be built.
        """
        self._task = None  # a failed reset leaves neither the last episode nor half of a new one
        super().reset(seed=seed)
        given = dict(options or {})
        task = given.pop("task", None)
        horizon = given.pop("horizon", None)
        max_horizon = given.pop("max_horizon", None)
        if given:
            known = ("task", "horizon", "max_horizon")
            raise UnknownName("reset option", min(given, key=str), known)
        chosen = self._choose_task(task)
        self._horizon = (
            (self._default_horizon or chosen.horizon)
            if horizon is None
            else arguments.turns(horizon)
        )
        if max_horizon is not None:
            self._horizon = min(self._horizon, arguments.turns(max_horizon))
        observation = self._begin(chosen)
        self._task = chosen
        self._turn = 0
        self._score = 0.0
        self._format_errors = 0
        self._end_reason = EndReason.RUNNING
        if self._instructions_in_observation:
            observation = f"{self.instructions}\n\n{observation}"
        return self._clean(observation), self._info(action_valid=True)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Play one turn. What a policy wrote never raises.

        Args:
            action: the policy's whole reply.

        Returns:
            observation, reward, terminated, truncated, info.

        Raises:
            TypeError: `action` is no `str`.
            ResetNeeded: before `reset`, or after the episode ended.
            EnvFault: the world broke.
        """
        if not isinstance(action, str):
            raise TypeError(f"an action is a str, the policy's reply; got {type(action).__name__}")
        self._require_task()
        if self._end_reason:
            raise gymnasium.error.ResetNeeded(
                f"the episode ended ({self._end_reason}); call reset() before step()"
            )
        self._turn += 1
        try:
            outcome = self._execute(self._read(action))
            action_valid = True
        except CommandError as error:
            outcome = Outcome.running(self._refuse(error), self._score)
            action_valid = False
            self._format_errors += isinstance(error, FormatError)
        reward = self._reward(
            RewardInput(
                self._score,
                outcome.score,
                outcome.end_reason,
                self._turn,
                self._horizon,
                action_valid,
                measures=outcome.measures,
            )
        )
        self._score = outcome.score
        self._end_reason = outcome.end_reason
        terminated = outcome.end_reason is not EndReason.RUNNING
        truncated = not terminated and self._turn >= self._horizon
        if truncated:
            self._end_reason = EndReason.HORIZON
        info = self._info(action_valid=action_valid)
        return self._clean(outcome.observation), float(reward), terminated, truncated, info

    def begin_step(self, action: str) -> None:
        """Start what `step(action)`, which must come next, will wait for.

        In-line vector workers call it on all environments before they step any, so that worlds
        which are computed elsewhere work at the same time. Never raises. By default there is
        nothing to start.

        Args:
            action: the policy's whole reply.
        """

    def render(self) -> Any:
        """The world for people: text for ``"ansi"``, uint8 (H, W, 3) for ``"rgb_array"``."""
        if self.render_mode is None:
            modes = self.metadata["render_modes"]
            raise gymnasium.error.Error(f"make the environment with render_mode= one of {modes}")
        self._require_task()
        return self._render_ansi() if self.render_mode == "ansi" else self._render_rgb_array()

    def oracle(self) -> Policy:
        """A policy that solves the current task from its current state.

        Raises:
            Unsupported: this family or backend has none.
        """
        self._require("oracle")
        return self._make_oracle()

    def admissible(self) -> list[str]:
        """All commands that the world would carry out now, as bare commands, in a fixed order.

        Raises:
            ResetNeeded: before the first `reset`.
            Unsupported: this family or backend cannot list them.
        """
        self._require("admissible")
        self._require_task()
        return [] if self._end_reason else self._admissible()

    def state_key(self) -> str:
        """A hash of the world without turn, history and random state; equal states, equal keys.

        Raises:
            ResetNeeded: before the first `reset`.
            Unsupported: this family or backend has none.
        """
        self._require("state_key")
        self._require_task()
        return self._state_key()

    def save_state(self) -> bytes:
        """The episode so far, as plain data. After `load_state` it continues identically.

        Raises:
            Unsupported: this family or backend cannot save.
        """
        self._require("clone")
        return SavedState(
            origin=self._origin(),
            task=self.task,
            horizon=self._horizon,
            turn=self._turn,
            score=self._score,
            format_errors=self._format_errors,
            end_reason=self._end_reason,
            generator=self.np_random,
            seed=self.np_random_seed,
            world=self._save_world(),
        ).to_bytes()

    def load_state(self, state: bytes) -> None:
        """Continue where `save_state` was called, in this or another process.

        Raises:
            InvalidState: not a state of this family, version and set of arguments. The
                environment is as it was before.
            Unsupported: this family or backend cannot load.
        """
        self._require("clone")
        saved = SavedState.from_bytes(state)
        saved.check_origin(self._origin())
        previous = self._np_random, self._np_random_seed
        self._np_random = saved.generator  # before the world is loaded, which may keep it
        self._np_random_seed = saved.seed
        try:
            self._load_world(saved.task, saved.world)
        except BaseException as error:
            self._np_random, self._np_random_seed = previous
            if isinstance(error, ValueError | KeyError | TypeError | IndexError):
                raise InvalidState(f"not a world of {self.family}: {error!r}") from error
            raise
        self._task = saved.task
        self._horizon, self._turn, self._score = saved.horizon, saved.turn, saved.score
        self._format_errors, self._end_reason = saved.format_errors, saved.end_reason

    def clone(self) -> Self:
        """A second environment in the same state; the two share nothing that changes.

        Raises:
            Unsupported: this family or backend cannot save.
        """
        state = self.save_state()
        twin = type(self)(**self._arguments)
        twin.spec = self.spec
        twin.load_state(state)
        return twin

    # ---------------------------------------------------------------------------------- inside

    def _require_task(self) -> Task:
        if self._task is None:
            raise gymnasium.error.ResetNeeded("call reset() first: there is no task yet")
        return self._task

    def _read(self, reply: str) -> Command:
        """The command in `reply`; those of short replies are remembered, as policies repeat them.

        Raises:
            CommandError: there is none.
        """
        command = self._commands.get(reply)
        if command is None:
            text = to_utf8(reply[:MAX_REPLY])
            command = self._format.parse(text, self.grammar, strict=self.strict)
            if len(reply) <= MAX_REMEMBERED_REPLY:
                if len(self._commands) == MAX_REMEMBERED:
                    self._commands.clear()
                self._commands[reply] = command
        return command

    def _clean(self, observation: str) -> str:
        return to_utf8(observation[:MAX_OBSERVATION])

    def _info(self, *, action_valid: bool) -> dict[str, Any]:
        info: dict[str, Any] = {
            "task_id": self._require_task().id,
            "turn": self._turn,
            "score": self._score,
            "success": self._end_reason is EndReason.SUCCESS,
            "action_valid": action_valid,
            "format_errors": self._format_errors,
            "end_reason": self._end_reason.value,
        }
        if self._info_keys:
            info |= self._asked_info()
        return info

    def _asked_info(self) -> dict[str, Any]:
        values = self._extra_info() if self.extra_info_keys.keys() & self._info_keys else {}
        if "admissible" in self._info_keys:
            values["admissible"] = self.admissible()
        if "state_key" in self._info_keys:
            values["state_key"] = self._state_key()
        return {key: values[key] for key in self._info_keys}

    def _choose_task(self, wanted: Task | str | int | None) -> Task:
        # Drawn even when not needed: the randomness inside the episode must not depend on whether
        # the task was drawn or named, or a record of task and seed could not be played again.
        draw = self.np_random.random()
        chosen = self._draw_task(draw) if wanted is None else self._find_task(wanted)
        if chosen.family != self.family:
            raise InvalidTask(
                f"task {chosen.id!r} belongs to {chosen.family!r}, this is {self.family!r}"
            )
        return chosen

    def _draw_task(self, draw: float) -> Task:
        if len(self.tasks) == 0:
            raise InvalidTask(f"the task set of {self.family}/{self.split} is empty")
        return self.tasks[int(draw * len(self.tasks))]

    def _find_task(self, wanted: Task | str | int) -> Task:
        if isinstance(wanted, Task):
            return wanted
        if isinstance(wanted, (int, np.integer)) and not isinstance(wanted, bool):
            try:
                return self._resolve_task(int(wanted))
            except IndexError as error:
                raise InvalidTask(str(error)) from None
        if isinstance(wanted, str):
            return self._resolve_entry(wanted, self._resolve_task)
        raise TypeError(
            f"options['task'] is an id, an index or a Task; got {type(wanted).__name__}"
        )

    def _narrow(self, whole: TaskSet, tasks: TaskSet | Sequence[TaskEntry] | str | None) -> TaskSet:
        if tasks is None:
            return whole
        if isinstance(tasks, TaskSet):
            return tasks
        if isinstance(tasks, str):
            entries = read_task_entries(tasks)
        else:
            entries = check_entries("tasks", tasks)
        of_id = functools.partial(self._resolve_id, whole)
        entry_of: dict[Task, TaskEntry] = {}
        for entry in entries:
            task = self._resolve_entry(entry, of_id)
            if task in entry_of:
                twice = f"{entry_id(entry_of[task])!r} and {entry_id(entry)!r}"
                raise InvalidTask(f"{twice} are one task, {task.id!r}; name it once")
            entry_of[task] = entry
        return TaskSet(ListSource(list(entry_of)))

    def _resolve_entry(self, entry: TaskEntry, of_id: Callable[[str], Task]) -> Task:
        return resolve_entry(entry, self.agentgym_name, of_item=self._resolve_item, of_id=of_id)

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        """The task with this id; families whose ids reach beyond the task set override it."""
        return whole[task_id]

    def _check_info_keys(self, info_keys: Sequence[str]) -> tuple[str, ...]:
        known = ("admissible", "state_key", *self.extra_info_keys)
        given = arguments.text_list("info_keys", info_keys)
        keys = tuple(arguments.one_of("info key", key, known) for key in given)
        for key in keys:
            if key in ("admissible", "state_key"):
                self._require(key)
        return keys

    def _require(self, capability: str) -> None:
        if capability not in self.capabilities:
            has = ", ".join(sorted(self.capabilities)) or "none"
            raise Unsupported(f"{self.family} has no {capability!r}; its capabilities: {has}")

    def _origin(self) -> dict[str, str]:
        """What a saved state must have in common with this environment."""
        values = {
            name: parameter.default
            for name, parameter in self._parameters().items()
            if parameter.default is not inspect.Parameter.empty
        }
        values |= self._arguments
        for name in ("render_mode", "tasks", "split", "horizon"):  # the state holds what they chose
            values.pop(name, None)
        return {
            "family": self.family,
            "version": self.version,
            "arguments": digest_of(values),
        }

    @classmethod
    def _parameters(cls) -> dict[str, inspect.Parameter]:
        """The constructor's keyword arguments by name, the family's own first."""
        found: dict[str, inspect.Parameter] = {}
        for base in cls.mro()[: cls.mro().index(TextEnv) + 1]:
            own_init = vars(base).get("__init__")
            parameters = inspect.signature(own_init).parameters if own_init else {}
            for name, parameter in parameters.items():
                if name != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD:
                    found.setdefault(name, parameter)
        return found
