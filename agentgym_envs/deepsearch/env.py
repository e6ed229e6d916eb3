"""`DeepSearchEnv`: searching a corpus for the answer to a question, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from agentgym_envs import arguments
from agentgym_envs.actions import Command, Grammar
from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.core import TextEnv
from agentgym_envs.deepsearch.actions import GRAMMAR, admissible
from agentgym_envs.deepsearch.dialect import OWN, Dialect
from agentgym_envs.deepsearch.matching import Grades
from agentgym_envs.deepsearch.observation import picture
from agentgym_envs.deepsearch.oracle import DeepSearchOracle
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.questions import FAMILY, Question
from agentgym_envs.deepsearch.retrievers import open_retriever
from agentgym_envs.deepsearch.reward import REWARDS, measures
from agentgym_envs.deepsearch.settings import Settings
from agentgym_envs.deepsearch.tasks import QuestionTasks, default_questions
from agentgym_envs.deepsearch.world import DeepSearchWorld
from agentgym_envs.errors import CommandError
from agentgym_envs.outcomes import Outcome, RewardFunction
from agentgym_envs.policies import PlannedPolicy
from agentgym_envs.tasks import Task, TaskSet
from agentgym_envs.vector import vector_factory

if TYPE_CHECKING:
    from agentgym_envs.deepsearch.retrievers.base import Retriever
    from agentgym_envs.policies import Policy


class DeepSearchEnv(TextEnv):
    """A question whose answer is found by searching, often more than once.

    ## Description

    Multi-hop question answering over a corpus of short passages, after Search-R1 (arXiv
    2503.09516) and AgentGym-RL (arXiv 2509.08755). The package brings a corpus and questions of
    its own, made from facts; both can be replaced, up to all of Wikipedia.

    ## Action Space

    Any text; it should be one search or the answer: ``<search>capital of Bolivia</search>``,
    ``<answer>Sucre</answer>``, after a thought in ``<think>`` if the policy likes; or the same in
    another action format, ``search capital of Bolivia``. Thoughts are taken out first, then there
    must be exactly one action. What is none costs a turn and is told what would be one.

    ## Observation Space

    Text. The first observation is the question, later ones the passages that a search found, in
    ``<information>``, or whether an answer is right.

    ## Starting State

    A task fixes the question. Task ids are ``deepsearch/<split>/<set>/<n>``. AgentGym's item id
    ``searchqa_<n>`` is the question with this number in its seven public data sets, which have to
    be given as ``questions``.

    ## Rewards

    ``"default"``: 1 for the right answer, which is the score. ``"f1"``: the words in common with
    the nearest right answer. ``"sub_em"``: 1 if a right answer is contained.

    ## Episode End

    Terminated by an answer, in success if it is right and else in failure; truncated at the
    horizon. By default it is two turns for each hop of the question, plus 4.

    ## Information

    On request (``info_keys``): ``admissible`` (some searches and answers that the question and the
    seen passages suggest), ``state_key``, ``em``, ``f1`` and ``sub_em`` (of the last answer),
    ``first_em`` (of the first), ``gold_found`` and ``gold_total`` (passages that tell the answer:
    seen, and in all), ``searches`` (how many), and ``search_setup`` (digest of the corpus, engine,
    how many passages a search shows, and rule of what is right: figures compare if they agree).

    ## Arguments

    Besides those of `TextEnv`, whose ``action_format`` is ``"tags"`` here unless another is named:

    - ``retriever``: where searches go, a name or an object that names one with its settings, see
      ``docs/deepsearch.md``. Default ``"fts5"``: the package's own corpus.
    - ``questions``: a file of questions to ask instead of the package's, a list of such files, or
      an object with one of these for each split.
    - ``sets``: a set of questions, or a list of them; None takes all.
    - ``top_k``: how many passages a search shows. Default 3.
    - ``max_words``: of the text of a passage; what is longer is cut. Default 150.
    - ``match``: what counts as the same answer, ``"clean"`` or ``"search_r1"``, the published
      rule; None takes ``"clean"``, and ``"search_r1"`` for ``compat="agentgym"``.
    - ``max_answers``: how many answers may be given; None takes 1, and 5 for
      ``compat="agentgym"``.
    - ``format_weight``: what a wrong answer is paid if every reply was well formed, and what a
      right one loses if one was not. Default 0.0.
    - ``retrieval_weight``: what a wrong answer is paid if all gold passages were seen, or a share
      of it. Default 0.0.
    - ``compat="agentgym"``: AgentGym's texts and rules, where they are not faults.

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
        "em": float,
        "f1": float,
        "sub_em": float,
        "first_em": float,
        "gold_found": int,
        "gold_total": int,
        "searches": int,
        "search_setup": dict,
    }
    agentgym_name = "searchqa"

    def __init__(
        self,
        *,
        retriever: str | Mapping[str, Any] = "fts5",
        questions: str | Sequence[str] | Mapping[str, str | Sequence[str]] | None = None,
        sets: str | Sequence[str] | None = None,
        top_k: int = 3,
        max_words: int = 150,
        match: str | None = None,
        max_answers: int | None = None,
        format_weight: float = 0.0,
        retrieval_weight: float = 0.0,
        action_format: str = "tags",
        **shared: Any,
    ) -> None:
        """Make the environment; corpus and questions are opened at the first `reset`.

        Raises:
            UnknownName: an unknown rule of matching.
            TypeError, ValueError: an argument of another kind.
        """
        super().__init__(action_format=action_format, **shared)
        self._dialect = self._choose_dialect()
        name = retriever.get("name") if isinstance(retriever, Mapping) else retriever
        if not isinstance(name, str):
            raise TypeError(
                f"retriever must be a name or an object with a name, got {retriever!r:.80}"
            )
        self._retriever_spec = retriever
        self._questions = questions
        if sets is not None:
            sets = [sets] if isinstance(sets, str) else arguments.text_list("sets", sets)
        if sets == []:
            raise ValueError("sets names no set of questions; leave it out for all of them")
        self._sets = sets
        self._settings = Settings(
            top_k=top_k,
            max_words=max_words,
            match=self._dialect.match if match is None else match,
            max_answers=self._dialect.max_answers if max_answers is None else max_answers,
            format_weight=format_weight,
            retrieval_weight=retrieval_weight,
        )
        self._world = self._world_of(Question("", ("",)))

    @property
    def world(self) -> DeepSearchWorld:
        """The world being played."""
        return self._world

    @property
    def retriever(self) -> Retriever:
        """Where searches go: one for all environments of a process that name the same.

        Raises:
            UnknownName, ValueError: there is no such engine, corpus or setting.
            EnvFault: the search engine cannot be reached.
        """
        return open_retriever(self._retriever_spec)

    def _choose_dialect(self) -> Dialect:
        if self.compat is None:
            return OWN
        from agentgym_envs.deepsearch.compat import AGENTGYM

        return AGENTGYM

    # ----------------------------------------------------------------------------------- tasks

    def _load_tasks(self) -> TaskSet:
        return self._all_tasks().of_split(self.split, self._sets)

    def _all_tasks(self) -> QuestionTasks:
        if self._questions is None:
            return default_questions()
        from agentgym_envs.deepsearch.qa_files import questions_of_files

        return questions_of_files(self._questions)

    def _resolve_task(self, name: str | int) -> Task:
        return self._all_tasks().of_id(name) if isinstance(name, str) else self.tasks[name]

    def _resolve_id(self, whole: TaskSet, task_id: str) -> Task:
        return self._all_tasks().of_id(task_id)

    def _resolve_item(self, item: AgentGymItem) -> Task:
        from agentgym_envs.deepsearch.public_sets import task_of_item

        return task_of_item(self._all_tasks(), item)

    # ------------------------------------------------------------------------------------ play

    def _make_grammar(self) -> Grammar:
        return GRAMMAR

    def _rules(self) -> str:
        return self._dialect.rules(self._settings.max_answers)

    def _begin(self, task: Task) -> str:
        world = self._world_of(Question.of_task(task))
        self._search_setup()  # a wrong one is told of here, not in mid-episode
        self._world = world
        return self._dialect.first(task.goal)

    def _world_of(self, question: Question) -> DeepSearchWorld:
        settings = self._settings
        return DeepSearchWorld(
            question, self._find, match=settings.match, max_answers=settings.max_answers
        )

    def _find(self, query: str) -> list[Passage]:
        top_k = self._settings.top_k
        (hits,) = self.retriever.search([query], top_k)
        return [hit.passage for hit in hits[:top_k]]

    def _execute(self, command: Command) -> Outcome:
        world = self._world
        found = command.verb.run(world, **command.arguments)
        if found is not None:
            return Outcome.running(self._dialect.passages(found, self._settings.max_words))
        outcome = self._verdict(world)
        outcome.measures = measures(world, self._settings, is_malformed=self._format_errors > 0)
        return outcome

    def _verdict(self, world: DeepSearchWorld) -> Outcome:
        text = self._dialect.verdict(world)
        if world.is_right:
            return Outcome.succeeded(text)
        return Outcome.failed(text) if world.is_done else Outcome.running(text)

    def _refuse(self, error: CommandError) -> str:
        return self._dialect.refusal(error) if self.action_format == "tags" else str(error)

    def _admissible(self) -> list[str]:
        return admissible(self._world)

    def _state_key(self) -> str:
        return self._world.state_key()

    def _extra_info(self) -> dict[str, Any]:
        world = self._world
        last, first = (world.grades[-1], world.grades[0]) if world.grades else (Grades(), Grades())
        return last._asdict() | {
            "first_em": first.em,
            "gold_found": world.num_gold_found,
            "gold_total": len(world.question.gold_passages),
            "searches": len(world.queries),
            "search_setup": self._search_setup(),
        }

    def _search_setup(self) -> dict[str, Any]:
        retriever = self.retriever
        return {
            "corpus": retriever.digest,
            "engine": retriever.name,
            "top_k": self._settings.top_k,
            "match": self._settings.match,
        }

    def _save_world(self) -> Any:
        return self._world.to_json()

    def _load_world(self, task: Task, state: Any) -> None:
        world = self._world_of(Question.of_task(task))
        world.load_json(state)
        self._world = world

    def _origin(self) -> dict[str, str]:
        return super()._origin() | {"corpus": self.retriever.digest}

    def _make_oracle(self) -> Policy:
        return PlannedPolicy(DeepSearchOracle(self).next_command, self.render_command)

    def _render_ansi(self) -> str:
        return picture(self._world)


make_vector = vector_factory("AgentGym/DeepSearch-v0")
