"""`Question`: what is asked, what is right, and how to find it.

A record of a question file, one JSON object a line::

    {"id": "deepsearch/test/atlas-bridge/17", "set": "atlas-bridge", "split": "test",
     "question": "…", "answers": ["…"], "hops": 2, "type": "…",
     "chain": [{"query": "…", "passage_id": "…", "answer": "…"}, …], "gold_passages": ["…"]}

Its `Task` holds all of it, so a task alone can be played and recorded. The chain is the way that
the oracle goes; questions from other files have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from agentgym_envs import arguments
from agentgym_envs.errors import InvalidTask
from agentgym_envs.spaces import is_utf8, to_utf8
from agentgym_envs.tasks import SPLITS, Task

FAMILY = "deepsearch"

EXTRA_TURNS = 4
"""How many turns the horizon hint leaves beyond two for each hop."""


class Step(NamedTuple):
    """One search of a chain: what to ask, which passage it is for, and what that passage tells."""

    query: str
    passage_id: str
    answer: str


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a task.

    Attributes:
        text: what is asked, on one line.
        answers: the right answer and its aliases, at least one.
        chain: the searches that lead to it; empty if nobody knows.
        gold_passages: ids of the passages that tell the answer; may be empty.
    """

    text: str
    answers: tuple[str, ...]
    chain: tuple[Step, ...] = ()
    gold_passages: tuple[str, ...] = ()

    @classmethod
    def of_task(cls, task: Task) -> Question:
        """The question that a task asks.

        Raises:
            InvalidTask: its payload holds none.
        """
        payload = task.payload
        try:
            return cls(
                text=task.goal,
                answers=tuple(_answers(payload["answers"])),
                chain=tuple(_step(step) for step in payload.get("chain", ())),
                gold_passages=tuple(_gold(payload)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InvalidTask(
                f"task {task.id!r} needs a payload with answers, a list of texts, and may have a "
                f"chain and gold_passages: {error!r}"
            ) from None


def one_line(text: str) -> str:
    """`text` with single blanks and without what cannot be encoded."""
    return to_utf8(" ".join(text.split()))


def task_of_record(record: Mapping[str, Any]) -> Task:
    """The task of a record that `check_record` has passed."""
    hops, chain = record["hops"], record.get("chain", [])
    return Task(
        family=FAMILY,
        id=record["id"],
        split=record["split"],
        goal=one_line(record["question"]),
        category=record["set"],
        seed=None,
        horizon=2 * hops + EXTRA_TURNS,
        difficulty=len({step["query"] for step in chain}) + 1 if chain else None,
        payload={
            "answers": record["answers"],
            "hops": hops,
            "type": record.get("type", ""),
            "chain": chain,
            "gold_passages": record.get("gold_passages", []),
        },
    )


def check_record(record: Any) -> None:
    """See that a record is one.

    Raises:
        ValueError, TypeError: it is none; the text says what is wrong.
    """
    if not isinstance(record, Mapping):
        _fail(f"expected an object, got {record!r:.80}")
    for name in ("id", "set", "question"):
        value = record.get(name)
        if not isinstance(value, str) or not value.strip() or not is_utf8(value):
            _fail(f"{name} must be a text, got {value!r:.80}")
    if record.get("split") not in SPLITS:
        _fail(f"split must be one of {', '.join(SPLITS)}, got {record.get('split')!r:.80}")
    expected = f"{FAMILY}/{record['split']}/{record['set']}/"
    if not record["id"].startswith(expected):
        _fail(f"id must begin with {expected!r}, got {record['id']!r:.80}")
    hops = record.get("hops")
    if type(hops) is not int or hops < 1:
        _fail(f"hops must be a whole number of at least 1, got {hops!r:.80}")
    _answers(record.get("answers"))
    _gold(record)
    for step in record.get("chain", []):
        _step(step)


def _answers(values: Any) -> list[str]:
    return arguments.text_list("answers", values) or _fail("answers must hold at least one text")


def _gold(data: Mapping[str, Any]) -> list[str]:
    return arguments.text_list("gold_passages", data.get("gold_passages", ()))


def _step(data: Any) -> Step:
    if not isinstance(data, Mapping):
        _fail(f"a step of the chain must be an object, got {data!r:.80}")
    return Step(*arguments.text_list("chain", [data.get(name) for name in Step._fields]))


def _fail(message: str) -> Any:
    raise ValueError(message)
