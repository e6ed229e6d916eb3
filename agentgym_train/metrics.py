"""Every number in the log: its name, unit and definition, in one place.

Names are ``group/name``. `summarize` computes the ones about episodes; the learner and the loop
add theirs. A name that is not in `METRICS` is refused when it is logged, so the table is whole.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

from agentgym_envs.episodes import EndReason, Episode


@dataclasses.dataclass(frozen=True)
class Metric:
    """The unit and the definition of one number."""

    unit: str
    meaning: str


METRICS: Mapping[str, Metric] = {
    "rollout/success": Metric("share", "episodes that reached the goal, at this step's horizon"),
    "rollout/return": Metric("reward", "mean undiscounted sum of rewards"),
    "rollout/score": Metric("0..1", "mean final score"),
    "rollout/turns": Metric("turns", "mean number of turns"),
    "rollout/horizon": Metric("turns", "most turns of an episode in this step"),
    "rollout/invalid": Metric("share", "turns whose reply could not be parsed or done"),
    "rollout/cut": Metric("share", "replies that were cut at sampling.max_tokens"),
    "rollout/reply_tokens": Metric("tokens", "mean sampled tokens of a reply"),
    "rollout/episode_tokens": Metric("tokens", "mean tokens of an episode, prompt included"),
    "rollout/episodes": Metric("episodes", "episodes collected in this step"),
    "rollout/useful": Metric("share", "episodes in groups whose returns differ"),
    **{
        f"end/{reason}": Metric("share", f"episodes that ended with reason {reason}")
        for reason in EndReason
        if reason
    },
    "train/loss": Metric("nats", "policy loss, mean over what loss.aggregation says"),
    "train/policy_loss": Metric("nats", "clipped surrogate, mean over sampled tokens"),
    "train/value_loss": Metric("reward^2", "half the critic's squared error at sampled tokens"),
    "train/explained_variance": Metric(
        "share", "variance of the critic's targets that its values before the step explain"
    ),
    "train/entropy": Metric("nats", "mean entropy of the policy at sampled tokens"),
    "train/kl_k1": Metric("nats", "mean of old minus new log-probability at sampled tokens"),
    "train/kl_k3": Metric("nats", "k3 estimate of the divergence from the policy before the step"),
    "train/kl_ref": Metric("nats", "k3 estimate of the divergence from the reference"),
    "train/clip_share": Metric("share", "sampled tokens whose ratio was clipped"),
    "train/ratio_max": Metric("ratio", "largest probability ratio of new to old policy"),
    "train/importance_mean": Metric("ratio", "mean probability ratio of learner to sampler, uncut"),
    "train/importance_max": Metric("ratio", "largest of these ratios"),
    "train/importance_cut": Metric("share", "sampled tokens whose ratio was cut"),
    "train/importance_ess": Metric("share", "effective sample size: mean^2 over mean square"),
    "train/mismatch_k3": Metric("nats", "k3 estimate of the learner's divergence from the sampler"),
    "train/grad_norm": Metric("norm", "mean gradient norm before clipping"),
    "train/critic_grad_norm": Metric("norm", "mean gradient norm of the critic before clipping"),
    "train/learning_rate": Metric("1", "learning rate of the last update"),
    "train/logprob_gap_mean": Metric(
        "nats", "mean difference of learner and sampler before the first update"
    ),
    "train/logprob_gap_max": Metric(
        "nats", "largest difference of learner and sampler before the first update"
    ),
    "train/tokens": Metric("tokens", "tokens trained on in this step, context included"),
    "train/sampled_tokens": Metric("tokens", "sampled tokens trained on in this step"),
    "train/samples": Metric("episodes", "episodes trained on in this step"),
    "eval/success": Metric("share", "held-out success, sampled, at eval.horizon"),
    "eval/success_low": Metric("share", "lower end of its 95 % Wilson interval"),
    "eval/success_high": Metric("share", "upper end of its 95 % Wilson interval"),
    "eval/success_greedy": Metric("share", "held-out success with the likeliest token each time"),
    "eval/episodes": Metric("episodes", "tasks of the evaluation"),
    "time/rollout": Metric("s", "collecting episodes"),
    "time/update": Metric("s", "learning"),
    "time/eval": Metric("s", "evaluation"),
    "time/save": Metric("s", "writing episodes, and the checkpoint before the step"),
    "time/step": Metric("s", "the whole step"),
    "speed/sampled_tokens": Metric("tokens/s", "sampled tokens per second of collecting"),
    "speed/rollout_tokens": Metric("tokens/s", "sampled and prefilled tokens per second"),
    "speed/train_tokens": Metric("tokens/s", "trained tokens per second of learning"),
    "speed/episodes": Metric("episodes/s", "episodes per second of the whole step"),
    "memory/peak": Metric("MiB", "largest resident memory of the process so far"),
}


def check_names(values: Mapping[str, float]) -> None:
    """Refuse names that the table does not define.

    Raises:
        KeyError: a name is not in `METRICS`.
    """
    unknown = sorted(set(values) - set(METRICS))
    if unknown:
        raise KeyError(f"metrics {unknown} are not defined in agentgym_train.metrics.METRICS")


def summarize(episodes: Sequence[Episode], group_size: int) -> dict[str, float]:
    """The ``rollout/`` and ``end/`` numbers of some episodes.

    Args:
        episodes: at least one, members of a group next to one another.
        group_size: episodes a group.
    """
    played = [episode for episode in episodes if episode.end_reason is not EndReason.FAULT]
    turns = [turn for episode in played for turn in episode.turns]
    groups = [episodes[i : i + group_size] for i in range(0, len(episodes), group_size)]
    useful = sum(len(group) for group in groups if len({e.return_ for e in group}) > 1)
    values = {
        "rollout/success": mean([episode.success for episode in played]),
        "rollout/return": mean([episode.return_ for episode in played]),
        "rollout/score": mean([episode.score for episode in played]),
        "rollout/turns": mean([len(episode.turns) for episode in played]),
        "rollout/horizon": float(max(episode.horizon for episode in episodes)),
        "rollout/invalid": mean([not turn.action_valid for turn in turns]),
        "rollout/cut": mean([turn.finish_reason == "length" for turn in turns]),
        "rollout/reply_tokens": mean([len(turn.sampled_ids or ()) for turn in turns]),
        "rollout/episode_tokens": mean([len(episode.token_ids) for episode in played]),
        "rollout/episodes": float(len(episodes)),
        "rollout/useful": useful / len(episodes),
    }
    for reason in EndReason:
        if reason:
            share = mean([episode.end_reason is reason for episode in episodes])
            values[f"end/{reason}"] = share
    return values


def mean(values: Sequence[float]) -> float:
    """The mean, or 0.0 of nothing."""
    return float(sum(values)) / len(values) if values else 0.0


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's score interval for a share; 95 % by default.

    Reference: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209.
    """
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    center = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)
