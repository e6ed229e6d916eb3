"""An evaluation from its plan to its report, whoever plays."""

from __future__ import annotations

import hashlib
import importlib.util
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentgym_envs.episodes import Episode, read_episodes
from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation.figure import draw
from agentgym_envs.evaluation.folder import EvalFolder
from agentgym_envs.evaluation.plan import EvalJob, EvalPlan
from agentgym_envs.evaluation.summary import require_whole, summarize

Play = Callable[[Sequence[EvalJob], Callable[[Episode], None]], Any]
"""Plays jobs, in any order, and hands on each episode as it ends."""


def run_evaluation(
    plan: EvalPlan,
    policy: Mapping[str, Any],
    play: Play,
    folder: EvalFolder,
    *,
    resume: bool = False,
) -> dict[str, Any]:
    """Play what is left of a plan and write its report.

    Whatever ends it early, episodes that have ended are in the folder; before the first has, it is
    left as if nothing had been asked. Without matplotlib there is no picture.

    Args:
        plan: what to play.
        policy: what decides who plays and how, for the fingerprint; JSON values, with ``name``.
        play: plays the jobs that are left.
        folder: where the files go.
        resume: go on with the evaluation in the folder, if there is one.

    Returns:
        What ``result.json`` holds.

    Raises:
        InvalidEvaluation: the folder is taken, or holds an evaluation that differs; or an episode
            is none to judge by, see `summarize`.
        Exception: what `play` raises.
    """
    fingerprint = plan.fingerprint(policy)
    folder.begin(fingerprint, resume=resume)
    episodes = folder.kept(plan)
    there = {(episode.task.id, episode.member) for episode in episodes}

    def keep(episode: Episode) -> None:
        if episode.horizon != plan.horizon:
            raise InvalidEvaluation(
                f"{plan.env_id} allows {episode.horizon} turns where {plan.horizon} are asked for; "
                "ask for no more than it allows"
            )
        require_whole(episode)
        folder.append(episode)
        episodes.append(episode)

    jobs = [job for job in plan.jobs() if (job.task.id, job.member) not in there]
    if jobs:
        folder.discard_result()
    try:
        play(jobs, keep)
    except BaseException:
        folder.leave_if_unplayed()
        raise
    summary = summarize(plan.tasks, episodes, horizon=plan.horizon, k=plan.k)
    if importlib.util.find_spec("matplotlib") is not None:
        draw(summary, folder.figure, title=f"{policy['name']} on {plan.env_id}")
    return folder.finish(plan, fingerprint, summary, episodes)


def recorded(path: str | Path) -> tuple[EvalPlan, dict[str, Any], Play]:
    """Episodes that were played before, such as a person's, as an evaluation.

    They are taken as they are, not played again. The n-th record of a task is its n-th try. An
    episode that its player stopped is one that was not solved.

    Returns:
        What `run_evaluation` takes: a plan of the tasks in the file, the policy, and how to play.

    Raises:
        InvalidRecord: a line is no episode.
        InvalidEvaluation: no file, no episode, or not all of one environment and horizon.
    """
    try:
        episodes = list(read_episodes(path))
    except OSError as error:
        raise InvalidEvaluation(
            f"cannot read the episodes in {path}: {error.strerror}; 'python -m agentgym_envs play "
            "ID --horizon N --record FILE' makes such a file"
        ) from None
    if not episodes:
        raise InvalidEvaluation(f"there is no episode in {path}; play at least one")
    for name in ("env_id", "horizon"):
        values = sorted({getattr(episode, name) for episode in episodes})
        if len(values) > 1:
            raise InvalidEvaluation(f"expected episodes of one {name} in {path}, got {values}")
    tries: Counter[str] = Counter()
    for episode in episodes:
        episode.member = tries[episode.task.id]
        tries[episode.task.id] += 1
    plan = EvalPlan(
        episodes[0].env_id,
        {},
        tuple(dict.fromkeys(episode.task for episode in episodes)),
        episodes[0].horizon,
        k=max(tries.values()),
    )
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()

    def play(jobs: Sequence[EvalJob], on_episode: Callable[[Episode], None]) -> None:
        wanted = {(job.task, job.member) for job in jobs}
        for episode in episodes:
            if (episode.task, episode.member) in wanted:
                on_episode(episode)

    return plan, {"name": Path(path).stem, "sha256": digest}, play
