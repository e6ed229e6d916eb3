"""An evaluation as a picture. The one file that needs matplotlib, and only when it draws."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from agentgym_envs.evaluation.statistics import Estimate
from agentgym_envs.evaluation.summary import Summary

_MAX_CATEGORIES = 40


def draw(summary: Summary, path: str | Path, *, title: str) -> None:
    """Write a PNG: success by category with intervals, and success by horizon, a curve for each k.

    Args:
        summary: what to draw; of more than 40 categories the first 40.
        path: the file.
        title: stands above.

    Raises:
        ImportError: matplotlib is not installed.
    """
    import matplotlib

    # Names come from anywhere: a dollar sign opens no formula, a letter without a picture is a box.
    with matplotlib.rc_context({"text.parse_math": False}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        _draw(summary, path, title)


def _draw(summary: Summary, path: str | Path, title: str) -> None:
    from matplotlib.figure import Figure

    categories = dict(list(summary.categories.items())[:_MAX_CATEGORIES])
    figure = Figure(figsize=(11, max(3.5, 1.5 + 0.25 * len(categories))), layout="constrained")
    bars, curves = figure.subplots(1, 2)
    figure.suptitle(title)
    found = [figures["success"] for figures in categories.values()]
    names = [f"{name} ({cell.tasks})" for name, cell in zip(categories, found, strict=True)]
    bars.barh(names, [cell.value for cell in found], xerr=_errors(found), capsize=2, color="0.75")
    bars.invert_yaxis()
    bars.set(xlim=(0, 1), xlabel="success by category (tasks)")
    grid = summary.grid
    for column, k in enumerate(grid.ks):
        cells = [row[column] for row in grid.cells]
        label = "k = 1 (mean success)" if k == 1 else f"k = {k}"
        values = [cell.value for cell in cells]
        curves.errorbar(grid.horizons, values, _errors(cells), marker="o", capsize=3, label=label)
    curves.set(ylim=(0, 1.02), xlabel="turns", ylabel="pass@k: solved within so many turns")
    curves.legend()
    figure.savefig(path, format="png", dpi=110, metadata={"Software": None})


def _errors(cells: list[Estimate]) -> Any:
    below = [max(0.0, cell.value - cell.low) for cell in cells]
    above = [max(0.0, cell.high - cell.value) for cell in cells]
    return [below, above]
