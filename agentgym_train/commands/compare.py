"""``compare``: the paired difference of two evaluations, task by task."""

from agentgym_envs.evaluation.commands import add_compare_options as configure
from agentgym_envs.evaluation.commands import run_compare as run

__all__ = ["configure", "run"]
