"""Evaluation of any policy from its `Episode` records: statistics, folders that resume, reports.

Needs numpy alone and knows no trainer; records with and without tokens are the same to it.
"""

from agentgym_envs.evaluation.comparison import compare
from agentgym_envs.evaluation.folder import EvalFolder, headline, read_result
from agentgym_envs.evaluation.held_out import EvalReport
from agentgym_envs.evaluation.plan import EvalJob, EvalPlan, choose_tasks, differences, make_env
from agentgym_envs.evaluation.players import (
    TEXT_PLAYERS,
    Player,
    endpoint_player,
    oracle_player,
    play,
    random_player,
    text_player,
)
from agentgym_envs.evaluation.running import Play, recorded, run_evaluation
from agentgym_envs.evaluation.statistics import (
    Estimate,
    estimate,
    estimates,
    paired_interval,
    pass_at_k,
)
from agentgym_envs.evaluation.summary import Grid, Summary, TaskResult, summarize

__all__ = [
    "Estimate",
    "EvalFolder",
    "EvalJob",
    "EvalPlan",
    "EvalReport",
    "Grid",
    "Play",
    "Player",
    "Summary",
    "TEXT_PLAYERS",
    "TaskResult",
    "choose_tasks",
    "compare",
    "differences",
    "endpoint_player",
    "estimate",
    "estimates",
    "headline",
    "make_env",
    "oracle_player",
    "paired_interval",
    "pass_at_k",
    "play",
    "random_player",
    "read_result",
    "recorded",
    "run_evaluation",
    "summarize",
    "text_player",
]
