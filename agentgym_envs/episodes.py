"""Episodes: the one record of a rollout.

An `Episode` is a task, a seed, and `Turn`s; everything else (returns, masks, arrays) is derived
from them, so it cannot drift. Token fields are plain ints and floats and optional: an episode
played by a person or by an oracle has none. Records are JSON lines with a schema version.

The tokens of turn k are ``context_ids`` (what was appended since the last sampled token: prompt,
observation, template) followed by ``sampled_ids`` (what the policy sampled, never re-encoded).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentgym_envs.errors import InvalidRecord, InvalidTask
from agentgym_envs.tasks import Task

EPISODE_SCHEMA = 1


class EndReason(enum.StrEnum):
    """Why an episode ended; `RUNNING`, the empty string, while it has not."""

    RUNNING = ""
    SUCCESS = "success"
    """The world ended with the goal reached. Set by the environment."""
    FAILURE = "failure"
    """The world ended without the goal. Set by the environment."""
    HORIZON = "horizon"
    """The horizon was reached. Set by the environment."""
    FAULT = "fault"
    """Infrastructure broke. Set by the vector environment."""
    CONTEXT = "context"
    """The model's context was full. Set by whoever drives the policy."""
    BUDGET = "budget"
    """A budget of tokens or time was used up. Set by a wrapper or whoever drives the policy."""
    STOPPED = "stopped"
    """The driver stopped the episode. Set by whoever drives the policy."""


@dataclasses.dataclass
class Turn:
    """One reply and the observation that answers it.

    Attributes:
        reply: what the policy wrote, with lone surrogates replaced.
        observation: the text that answers it.
        reward: reward of this turn.
        score: score after this turn, 0..1.
        action_valid: whether the reply was a command that the world carried out.
        context_ids: token ids appended before sampling, or None for a record without tokens.
        sampled_ids: token ids the policy sampled, in order.
        logprobs: log-probability of each sampled id under the sampling distribution.
        temperature: what the model's logits were divided by to sample them, 0 if the likeliest were
            taken, None if no model sampled them.
        finish_reason: ``"stop"`` if the reply ended by itself, ``"length"`` if it was cut.
        weights_version: version of the weights that sampled the reply.
        role: ``"tool"`` if the observation answers a tool call, None if it is the user's.
        call_id: id of the tool call that the observation answers, or None.
        state_key: key of the state in which the reply was given, or None if not asked for.
    """

    reply: str
    observation: str
    reward: float
    score: float
    action_valid: bool
    context_ids: list[int] | None = None
    sampled_ids: list[int] | None = None
    logprobs: list[float] | None = None
    temperature: float | None = None
    finish_reason: str | None = None
    weights_version: int | None = None
    role: str | None = None
    call_id: str | None = None
    state_key: str | None = None


@dataclasses.dataclass
class Episode:
    """One rollout from reset to end.

    Attributes:
        task: what was played.
        seed: the seed given to `reset`, or None.
        member: position in its group of episodes of the same task, from 0.
        horizon: most turns it was allowed.
        env_id: id of the environment, ``"AgentGym/BabyAI-v0"``, or "" if unknown.
        action_format: name of the action format of the replies.
        instructions: the rules given to the policy, for the system message.
        first_observation: the observation that `reset` returned.
        turns: in order.
        end_reason: why it ended.
        success: whether the goal was reached.
        fault: what broke, if `end_reason` is `EndReason.FAULT`.
        tail_ids: token ids that follow the last sampled one (the final observation, and what would
            open the next reply), or None.
        versions: versions of packages and weights, by name.
    """

    task: Task
    seed: int | None
    horizon: int
    instructions: str
    first_observation: str
    turns: list[Turn] = dataclasses.field(default_factory=list)
    end_reason: EndReason = EndReason.RUNNING
    success: bool = False
    fault: str = ""
    member: int = 0
    env_id: str = ""
    action_format: str = "command"
    tail_ids: list[int] | None = None
    versions: dict[str, str] = dataclasses.field(default_factory=dict)

    @property
    def return_(self) -> float:
        """Undiscounted sum of the rewards."""
        return float(sum(turn.reward for turn in self.turns))

    @property
    def score(self) -> float:
        """Score after the last turn, 0..1."""
        return self.turns[-1].score if self.turns else 0.0

    @property
    def has_tokens(self) -> bool:
        """Whether every turn carries token ids."""
        return all(turn.sampled_ids is not None for turn in self.turns)

    @property
    def token_ids(self) -> list[int]:
        """All token ids up to the last sampled one, in order: (T,)."""
        return [
            token
            for turn in self.turns
            for token in (*(turn.context_ids or ()), *(turn.sampled_ids or ()))
        ]

    @property
    def sampled_mask(self) -> list[bool]:
        """True on the tokens of `token_ids` that the policy sampled: (T,)."""
        return [
            sampled
            for turn in self.turns
            for sampled in (
                *[False] * len(turn.context_ids or ()),
                *[True] * len(turn.sampled_ids or ()),
            )
        ]

    @property
    def token_rewards(self) -> list[float]:
        """Reward of each sampled token, in order: (n,); [] if none was sampled.

        A turn's reward sits on the last token it sampled. The reward of a turn without sampled
        tokens goes back to the most recent one, or, before any, forward to the last one of the
        first turn that has some. The sum is the return.
        """
        rewards: list[float] = []
        waiting = 0.0
        for turn in self.turns:
            if turn.sampled_ids:
                rewards += [0.0] * len(turn.sampled_ids)
                waiting, rewards[-1] = 0.0, waiting + turn.reward
            elif rewards:
                rewards[-1] += turn.reward
            else:
                waiting += turn.reward
        return rewards

    def to_json(self) -> dict[str, Any]:
        """The episode as JSON values, with the schema version."""
        data = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        data["task"] = self.task.to_json()
        data["turns"] = [
            {name: value for name, value in vars(turn).items() if value is not None}
            for turn in self.turns
        ]
        data["end_reason"] = str(self.end_reason)
        return {"schema": EPISODE_SCHEMA} | data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Episode:
        """The episode that `to_json` described.

        Raises:
            InvalidRecord: another schema, or a field is missing, unknown or of a wrong kind.
        """
        if not isinstance(data, Mapping):
            raise InvalidRecord(
                f"not an episode record: expected a mapping, got {type(data).__name__}"
            )
        fields = dict(data)
        schema = fields.pop("schema", None)
        if schema != EPISODE_SCHEMA:
            raise InvalidRecord(
                f"episode schema {EPISODE_SCHEMA} expected, got {schema!r}; "
                "read it with the version of agentgym_envs that wrote it"
            )
        try:
            fields["task"] = Task.from_json(fields["task"])
            fields["turns"] = [Turn(**turn) for turn in fields["turns"]]
            fields["end_reason"] = EndReason(fields["end_reason"])
            return cls(**fields)
        except (KeyError, TypeError, ValueError, InvalidTask) as error:
            raise InvalidRecord(f"not an episode record: {error}") from error


def write_episodes(path: str | Path, episodes: Iterable[Episode], *, append: bool = False) -> None:
    """Write one episode a line, UTF-8, keys in the order of the dataclass.

    A file is replaced as a whole, once all is written.

    Args:
        path: the file; its folder must exist.
        episodes: what to write.
        append: add to an existing file instead of replacing it.
    """
    path = Path(path)
    at_once = append or (path.exists() and not path.is_file())  # a device is not replaced
    written = path if at_once else path.with_name(f"{path.name}.partial")
    with open(written, "a" if append else "w", encoding="utf-8", newline="\n") as file:
        for episode in episodes:
            file.write(episode_line(episode))
    os.replace(written, path)


def episode_line(episode: Episode) -> str:
    """The line of JSON that stands for `episode` in a file, with its line feed."""
    return json.dumps(episode.to_json(), ensure_ascii=False) + "\n"


def read_episodes(path: str | Path) -> Iterator[Episode]:
    """Read what `write_episodes` wrote, lazily.

    Raises:
        InvalidRecord: a line is no episode; the message names the file and the line.
    """
    with open(path, "rb") as file:  # decoded line by line, so that an error names its line
        for number, line in enumerate(file, start=1):
            try:
                yield Episode.from_json(json.loads(line.decode()))
            except (ValueError, RecursionError) as error:
                raise InvalidRecord(f"{path}, line {number}: {error}") from error
