"""Every number in the log: its name, unit and definition, in one place.

Names are ``group/name``. They stand in ``metrics.toml`` beside this file, which the live view, the
report and the docs read too; a name that is not there is refused when it is logged, so the table is
whole. The numbers themselves come from `agentgym_envs.rollouts`, the learner and the loop.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping
from importlib import resources


@dataclasses.dataclass(frozen=True)
class Metric:
    """The definition of one number.

    Attributes:
        unit: what it is counted in.
        meaning: what it is.
        label: what it is called in the live view and above its curve; "" keeps it out of both.
        format: how it is written in the live view.
    """

    unit: str
    meaning: str
    label: str = ""
    format: str = ""


def _read_table() -> dict[str, Metric]:
    text = (resources.files("agentgym_train") / "metrics.toml").read_text("utf-8")
    return {
        f"{group}/{name}": Metric(**fields)
        for group, metrics in tomllib.loads(text).items()
        for name, fields in metrics.items()
    }


METRICS: Mapping[str, Metric] = _read_table()
"""The table, in the order of the file."""


def check_names(values: Mapping[str, float]) -> None:
    """Refuse names that the table does not define.

    Raises:
        KeyError: a name is not in `METRICS`.
    """
    unknown = sorted(set(values) - set(METRICS))
    if unknown:
        raise KeyError(f"metrics {unknown} are not defined in agentgym_train/metrics.toml")
