"""How SciWorld looks: the simulator's own texts, and a few sentences of ours where it has none."""

from __future__ import annotations

from agentgym_envs.actions.grammar import shorten
from agentgym_envs.sciworld.session import Session, StepResult


def on_one_line(description: str) -> str:
    """The task in words, with single blanks."""
    return " ".join(description.split())


def first_observation(goal: str, look: str) -> str:
    """The task in words, then the room."""
    return f"{goal}\n{look.strip()}"


def answer(result: StepResult) -> str:
    """What the policy is told about a line that was understood."""
    text = result.observation.strip()
    if not result.error:
        return text or "Nothing happens."
    return f"{text}\nThe simulator could not finish this action.".lstrip()


def not_understood(line: str) -> str:
    """What the policy is told about a line that names no action."""
    return (
        f'No known action matches "{shorten(line)}". Name things that are here as they are '
        "described."
    )


def explained(observation: str, reason: str) -> str:
    """What the policy is told at the end of a task that has failed."""
    return f"{observation}\n\n{reason}".lstrip()


def question_needed(number: int) -> str:
    """What the policy is told about a number where nothing was asked."""
    return f"{number} answers no question: the simulator has asked nothing."


def out_of_range(number: int, num_choices: int) -> str:
    """What the policy is told about a number that stands for no action."""
    return f"{number} stands for no action; answer with a number from 0 to {num_choices - 1}."


def picture(session: Session, goal: str, status: str) -> str:
    """The whole world as text, for people."""
    return "\n\n".join([goal, session.text("look"), session.text("inventory"), status])
