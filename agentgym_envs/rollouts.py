"""What the episodes of a training step say, as numbers under names that loggers like.

They come from `Episode` records alone, so any trainer can log them. Episodes in which the world
broke are counted under ``end/fault`` and left out of everything about the policy. A number that
nothing was there to measure is absent, not 0.

A reply is repeated if the episode gave it before in the same state; where states have no keys, the
observation before the reply stands for the state. Loops of several turns come back to a state, so
they need no measure of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentgym_envs.episodes import EndReason, Episode

_ROUNDING = 1e-8
"""Sums of the same rewards in another order differ by less."""


def summarize(episodes: Sequence[Episode], group_size: int) -> dict[str, float]:
    """The ``rollout/`` and ``end/`` numbers of some episodes.

    Args:
        episodes: at least one, members of a group next to one another.
        group_size: episodes a group.

    Returns:
        Numbers by name; the trainer's table ``metrics.toml`` says what each is.
    """
    values = {
        "rollout/horizon": float(max(episode.horizon for episode in episodes)),
        "rollout/episodes": float(len(episodes)),
    }
    for reason in filter(None, EndReason):
        values[f"end/{reason}"] = mean([episode.end_reason is reason for episode in episodes])
    played = _unbroken(episodes)
    turns = [turn for episode in played for turn in episode.turns]
    groups = [_unbroken(episodes[i : i + group_size]) for i in range(0, len(episodes), group_size)]
    agree = [group for group in groups if group and _agree(group)]
    unsolved = [group for group in agree if not any(episode.success for episode in group)]
    values |= {
        "rollout/useful": (len(played) - sum(map(len, agree))) / max(1, len(played)),
        "rollout/unsolved": sum(map(len, unsolved)) / max(1, len(played)),
        "rollout/success": mean([episode.success for episode in played]),
        "rollout/return": mean([episode.return_ for episode in played]),
        "rollout/score": mean([episode.score for episode in played]),
        "rollout/invalid": mean([not turn.action_valid for turn in turns]),
        "rollout/repeats": sum(map(num_repeats, played)) / max(1, len(turns)),
        "rollout/cut": mean([turn.finish_reason == "length" for turn in turns]),
        "rollout/episode_tokens": mean([len(episode.token_ids) for episode in played]),
        **_lengths(played, ""),
    }
    for suffix, success in (("_success", True), ("_failure", False)):
        if some := [episode for episode in played if episode.success is success]:
            values |= _lengths(some, suffix)
    return values


def _unbroken(episodes: Sequence[Episode]) -> list[Episode]:
    return [episode for episode in episodes if episode.end_reason is not EndReason.FAULT]


def _agree(group: Sequence[Episode]) -> bool:
    """Whether the returns of a group are equal but for rounding, so that they teach nothing."""
    returns = [episode.return_ for episode in group]
    return max(returns) - min(returns) <= _ROUNDING


def _lengths(episodes: Sequence[Episode], suffix: str) -> dict[str, float]:
    replies = [len(turn.sampled_ids or ()) for episode in episodes for turn in episode.turns]
    return {
        f"rollout/turns{suffix}": mean([len(episode.turns) for episode in episodes]),
        f"rollout/reply_tokens{suffix}": mean(replies),
    }


def num_repeats(episode: Episode) -> int:
    """How many turns gave an earlier reply of the episode again in the same state."""
    observations = [episode.first_observation, *(turn.observation for turn in episode.turns)]
    given = [
        (turn.state_key or before, " ".join(turn.reply.split()))
        for turn, before in zip(episode.turns, observations, strict=False)
    ]
    return len(given) - len(set(given))


def mean(values: Sequence[float]) -> float:
    """The mean, or 0.0 of nothing."""
    return float(sum(values)) / len(values) if values else 0.0
