"""Demonstrations as token records for cloning, and their settings.

The episodes come from `agentgym_envs.demonstrations`; here their texts become the tokens that a
policy would have had to sample.
"""

from __future__ import annotations

import dataclasses

from agentgym_envs.episodes import Episode
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.errors import ConfigError, at_least


@dataclasses.dataclass(frozen=True)
class DemonstrationConfig:
    """Which demonstrations are made."""

    episodes: int = 2000
    """How many solved episodes."""
    noise: float = 0.4
    """Probability that a random command replaces the oracle's."""
    horizon: int = 10
    """Most turns of a demonstration; longer ones are thrown away."""

    def __post_init__(self) -> None:
        at_least(self, "demonstrations", 1, "episodes", "horizon")
        if not 0 <= self.noise < 1:
            raise ConfigError(f"demonstrations.noise must be in [0, 1), got {self.noise}")


def with_tokens(episode: Episode, template: ChatTemplate, instructions: str) -> Episode:
    """A copy of `episode` whose turns carry the tokens a policy would have had to sample.

    Args:
        episode: a record without tokens.
        template: turns text into tokens.
        instructions: the system message, or "" for none.
    """
    turns = []
    context_ids = template.open(instructions, episode.first_observation)
    for turn in episode.turns:
        reply_ids = template.encode_reply(turn.reply)
        turns.append(
            dataclasses.replace(
                turn, context_ids=context_ids, sampled_ids=reply_ids, finish_reason="stop"
            )
        )
        context_ids = template.extend(turn.observation, closed=True)
    return dataclasses.replace(episode, turns=turns)
