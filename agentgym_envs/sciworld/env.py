"""`SciWorldEnv`: ScienceWorld's experiments as text."""

from __future__ import annotations

import contextlib
import functools
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any, ClassVar

from agentgym_envs import arguments
from agentgym_envs.actions import Command, Grammar
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.core import TextEnv
from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import CommandError, InvalidTask
from agentgym_envs.outcomes import Outcome, RewardFunction
from agentgym_envs.policies import PlannedPolicy
from agentgym_envs.sciworld.actions import lines_of
from agentgym_envs.sciworld.dialect import Dialect, own_dialect, reason_of_failure
from agentgym_envs.sciworld.experiments import (
    NAMES,
    can_be_done,
    check_simplifications,
    experiment,
    simplifications_of,
)
from agentgym_envs.sciworld.java_runtime import SIMULATOR_VERSION
from agentgym_envs.sciworld.observation import (
    not_understood,
    out_of_range,
    picture,
    question_needed,
)
from agentgym_envs.sciworld.oracle import SciWorldOracle, canonical_lines, gold_of
from agentgym_envs.sciworld.reward import REWARDS, outcome_of
from agentgym_envs.sciworld.session import Session, StepResult
from agentgym_envs.sciworld.tasks import (
    FAMILY,
    certified_task,
    certified_tasks,
    certified_variation,
    digest_of,
)
from agentgym_envs.tasks import Task, TaskSet
from agentgym_envs.vector import vector_factory

if TYPE_CHECKING:
    from agentgym_envs.policies import Policy


class SciWorldEnv(TextEnv):
    """A house with a laboratory in it, and an experiment of elementary school science to do.

    ## Description

    ScienceWorld (arXiv 2203.07540): 30 kinds of experiments, from boiling water to Mendel's peas,
    in ten rooms with some two hundred things that heat, melt, flow, conduct, grow and breed. The
    simulator is the PyPI package's own, hosted many to a Java process; see `docs/sciworld.md`.

    ## Action Space

    Any text; it should be one command: ``go to kitchen``, ``pick up thermometer``, ``use
    thermometer on water``, ``focus on water``, ``wait``. The verbs are the simulator's action
    templates. Where a name fits several things the simulator asks which is meant; a number answers
    it, and any other command drops the question. A reply that names no action costs a turn,
    changes nothing, and is answered by the reason.

    ## Observation Space

    The simulator's texts. The first observation states the task and the room.

    ## Starting State

    A task fixes the world: an experiment and one of its variations, in the package's own splits.
    Task ids are ``sciworld/<split>/<experiment>/<variation>``. Every task of the manifest was
    solved by its gold actions. AgentGym's item id ``sciworld_<n>`` is entry n of its server's list,
    or, if the item states its task and that fits only there, of the list of its published files.

    ## Rewards

    ``"default"``: the gain in score. ``"no_loss"``: the same, but failing takes nothing back.

    ## Episode End

    Terminated with success when all goals of the task are reached, at the score 1; with failure
    when the simulator counts the task as failed, at the score 0, with the reason in words;
    truncated at the horizon, by default twice the turns of the gold actions plus 5, and at least
    20.

    ## Information

    On request (``info_keys``): ``admissible``, ``state_key``, ``moves`` (units of time so far),
    ``look``, ``inventory``, ``goal_progress``, ``object_tree`` (all objects, as JSON values), and
    ``failure`` (why the task has failed, or "").

    ## Arguments

    Besides those of `TextEnv`:

    - ``experiments``: names of experiments; None for all 30, or those that the
      simplifications leave.
    - ``simplifications``: any of ``teleportAction``, ``openDoors``, ``openContainers``,
      ``selfWateringFlowerPots``, ``noElectricalAction``, and ``easy`` for those that the package
      calls so.
    - ``compat="agentgym"``: AgentGym's texts, rules and task indices; see
      `agentgym_envs.sciworld.compat`.

    ## Version History

    - v0: first version.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 4}
    family = FAMILY
    version = "0"
    capabilities = frozenset({"clone", "oracle", "admissible", "state_key"})
    rewards: ClassVar[Mapping[str, RewardFunction]] = REWARDS
    compat_modes = ("agentgym",)
    extra_info_keys: ClassVar[Mapping[str, type]] = {
        "moves": int,
        "look": str,
        "inventory": str,
        "goal_progress": str,
        "object_tree": dict,
        "failure": str,
    }
    agentgym_name = "sciworld"

    def __init__(
        self,
        *,
        experiments: Sequence[str] | None = None,
        simplifications: Sequence[str] = (),
        **shared: Any,
    ) -> None:
        """Make the environment; nothing is started before the first `reset`.

        Raises:
            UnknownName: no such experiment or simplification.
            InvalidTask: an experiment that cannot be done under the simplifications.
            TypeError, ValueError: not a list of texts, or one without experiments.
        """
        super().__init__(**shared)
        self._simplifications = check_simplifications(
            arguments.text_list("simplifications", simplifications)
        )
        self._experiments = self._choose_experiments(experiments)
        self._dialect = self._choose_dialect()
        self._session = Session()
        self._goal = ""
        self._lines: list[str] = []
        self._num_choices = 0
        self._moves = 0
        self._failure = ""

    def _choose_experiments(self, names: Sequence[str] | None) -> tuple[str, ...]:
        if names is None:
            return tuple(name for name in NAMES if can_be_done(name, self._simplifications))
        chosen = arguments.text_list("experiments", names)
        if not chosen:
            raise ValueError("experiments names none; leave it out for all of them")
        for name in chosen:
            simplifications_of(experiment(name).name, self._simplifications)
        return tuple(chosen)

    def _choose_dialect(self) -> Dialect:
        if self.compat is None:
            return own_dialect()
        from agentgym_envs.sciworld.compat import agentgym_dialect

        return agentgym_dialect()

    # ----------------------------------------------------------------------------------- tasks

    def _load_tasks(self) -> TaskSet:
        names = [name for name in self._experiments if name in self._dialect.experiments]
        if not names:
            raise InvalidTask(f"AgentGym's list has no task of {', '.join(self._experiments)}")
        return certified_tasks(self.split, names, self._dialect.max_moves)

    def _resolve_task(self, name: str | int) -> Task:
        if isinstance(name, str):
            return certified_task(name)
        if self._dialect.variation_of_index is None:
            return self.tasks[name]
        return certified_variation(*self._dialect.variation_of_index(name))

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        return certified_task(task_id)

    def _resolve_item(self, item: AgentGymItem) -> Task:
        from agentgym_envs.sciworld.compat import task_of_item

        return task_of_item(item)

    # ------------------------------------------------------------------------------------ play

    @property
    def goal(self) -> str:
        """The task in the simulator's words, which `Task.goal` does not hold."""
        self._require_task()
        return self._goal

    def _make_grammar(self) -> Grammar:
        return self._dialect.grammar(self._simplifications)

    def _rules(self) -> str:
        return _rules()

    def _begin(self, task: Task) -> str:
        look, self._goal = self._load(self._session, task)
        self._lines = []
        self._num_choices = self._moves = 0
        self._failure = ""
        return self._dialect.first(self._goal, look)

    def _load(self, session: Session, task: Task) -> tuple[str, str]:
        """Build the world of `task`; what its first room looks like, and the goal in words."""
        name, variation = task.payload.get("experiment"), task.payload.get("variation")
        if name not in NAMES or type(variation) is not int:
            raise InvalidTask(
                f"task {task.id!r} needs a payload with an experiment and a variation, "
                f"got {dict(task.payload)}"
            )
        total = experiment(name).num_variations
        if not 0 <= variation < total:
            raise InvalidTask(f"{name} has the variations 0 to {total - 1}; got {variation}")
        chosen = simplifications_of(name, self._simplifications)
        look, description = session.load(name, variation, chosen)
        stated = task.payload.get("stated")
        if digest_of(description) != stated:
            raise InvalidTask(
                f"task {task.id!r} carries the digest {stated!r}, but the simulator states "
                f"{description!r}, whose digest is {digest_of(description)!r}; take the task by "
                "its id"
            )
        return look, self._dialect.goal(description)

    def begin_step(self, action: str) -> None:
        if self._task is not None and not self._end_reason:
            with contextlib.suppress(CommandError):  # which `step` answers
                command = self._read(action)
                self._check(command)
                self._session.begin(command, is_official=self._dialect.is_official)

    def _execute(self, command: Command) -> Outcome:
        self._check(command)
        line = lines_of(command)[0]
        result = self._session.do(command, is_official=self._dialect.is_official)
        if not result.is_understood:
            raise CommandError(not_understood(line))
        self._lines.append(line)
        self._num_choices = result.num_choices
        self._moves = result.moves
        return self._outcome(command, result)

    def _check(self, command: Command) -> None:
        if command.verb.name == "choose" and not self._dialect.is_official:
            self._check_choice(command.arguments["number"])

    def _refuse(self, error: CommandError) -> str:
        return self._dialect.refuse(error)

    def _outcome(self, command: Command, result: StepResult) -> Outcome:
        observation = self._dialect.answer(result)
        reason = reason_of_failure(command)
        outcome = outcome_of(result, observation, self._dialect.fail(observation, reason))
        limit = self._dialect.max_moves
        if outcome.end_reason is EndReason.FAILURE:
            self._failure = reason
        elif outcome.end_reason is EndReason.RUNNING and limit and result.moves > limit:
            self._failure = f"The time is over: {result.moves} units of {limit}."
            return Outcome.failed(observation, outcome.score)
        return outcome

    def _check_choice(self, number: int) -> None:
        if self._num_choices == 0:
            raise CommandError(question_needed(number))
        if not 0 <= number < self._num_choices:
            raise CommandError(out_of_range(number, self._num_choices))

    def _admissible(self) -> list[str]:
        return self._session.valid_actions()

    def _state_key(self) -> str:
        return self._session.text("state")

    def _extra_info(self) -> dict[str, Any]:
        ask: dict[str, Any] = {
            "moves": lambda: self._moves,
            "look": lambda: self._session.text("look"),
            "inventory": lambda: self._session.text("inventory"),
            "goal_progress": lambda: self._session.text("progress"),
            "object_tree": lambda: json.loads(self._session.text("tree")),
            "failure": lambda: self._failure,
        }
        return {key: ask[key]() for key in self._info_keys if key in ask}

    def _save_world(self) -> Any:
        return {"lines": list(self._lines), "failure": self._failure}

    def _load_world(self, task: Task, state: Any) -> None:
        lines, failure = state["lines"], state["failure"]
        if not isinstance(failure, str):
            raise TypeError(f"failure must be a text, got {failure!r}")
        lines = arguments.text_list("lines", lines)
        session = Session()
        _, goal = self._load(session, task)
        num_choices = moves = 0
        for line in lines:
            command = self.grammar.parse(line)
            result = session.do(command, is_official=self._dialect.is_official)
            if not result.is_understood:
                raise ValueError(f"the saved line {line!r} names no action when played again")
            num_choices, moves = result.num_choices, result.moves
        self._session.close()
        self._session = session
        self._goal, self._lines = goal, lines
        self._num_choices, self._moves, self._failure = num_choices, moves, failure

    def _origin(self) -> dict[str, str]:
        return super()._origin() | {"simulator": SIMULATOR_VERSION}

    def _make_oracle(self) -> Policy:
        payload = self.task.payload
        name, variation = payload["experiment"], payload["variation"]
        chosen = simplifications_of(name, self._simplifications)
        gold = canonical_lines(self.grammar, gold_of(name, variation, chosen))
        oracle = SciWorldOracle(gold, lambda: self._lines)
        return PlannedPolicy(oracle.next_command, self.render_command)

    def _render_ansi(self) -> str:
        status = f"turn {self._turn} of {self._horizon}, time {self._moves}, score {self._score:g}"
        return picture(self._session, self.goal, status)

    def close(self) -> None:
        """Let go of the simulator; the server stays for other environments of this process."""
        self._session.close()


@functools.cache
def _rules() -> str:
    return resources.files("agentgym_envs.sciworld").joinpath("prompt.md").read_text("utf-8")


make_vector = vector_factory("AgentGym/SciWorld-v0")
