"""Evolve: play, keep the episodes that did well, imitate them, repeat.

AgentEvol (arXiv 2406.04151), step by step: every step keeps some of the episodes that the present
policy has just played and goes on from the present weights. The original plays all tasks, adds the
demonstrations it began with, and fine-tunes the base model anew on the whole, four times over;
`EvolveConfig.demonstrations` mixes some in here.

Nothing is compared, so there is no baseline, and no gradient makes a token less likely: the policy
narrows down to what it can do already.
"""

from __future__ import annotations

import dataclasses

from agentgym_envs.episodes import Episode
from agentgym_train.algorithms.sft import Imitation
from agentgym_train.errors import ConfigError, at_least


@dataclasses.dataclass(frozen=True)
class EvolveConfig:
    """AgentEvol."""

    min_score: float = 1.0
    """The final score from which on an episode is kept, 0..1; successes always are, episodes of
    score 0 never."""
    weighted: bool = False
    """Weigh the tokens of an episode by its score. The loss stays a mean over all kept tokens."""
    demonstrations: int = 0
    """How many demonstrations a step imitates besides."""

    def __post_init__(self) -> None:
        at_least(self, "evolve", 0, "min_score", "demonstrations")
        if self.min_score > 1:
            raise ConfigError(f"evolve.min_score is a score, 0..1; got {self.min_score}")


class Evolve(Imitation[EvolveConfig]):
    """Imitation of the policy's own best episodes."""

    name = "evolve"
    settings = EvolveConfig

    def worth(self, episode: Episode) -> float:
        score = 1.0 if episode.success else episode.score
        if score < self.config.min_score:
            return 0.0
        return score if self.config.weighted else float(score > 0)
