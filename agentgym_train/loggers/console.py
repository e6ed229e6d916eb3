"""The live view of a run in a terminal: progress, what the policy does, where the time goes.

On a terminal one panel is redrawn in place; elsewhere (a file, CI) a line is written every few
steps. It shows the numbers that have a label in `agentgym_train.metrics` and computes none.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from agentgym_train.metrics import METRICS

_TIMES = ("time/rollout", "time/update", "time/eval", "time/save")
_LINE_EVERY = 10


class ConsoleLogger:
    """Shows a run on `console`.

    Args:
        console: where to draw; standard error keeps standard output for results.
        total: steps of the whole run, warm-up included.
        done: steps done already.
    """

    def __init__(self, console: Console, *, total: int, done: int = 0) -> None:
        self._console = console
        self._total = total
        self._latest: dict[str, float] = {}
        self._seconds = dict.fromkeys(_TIMES, 0.0)
        columns = (TextColumn("{task.description:<8}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._bar = self._progress.add_task("start", total=total, completed=done)
        self._live = Live(console=console, get_renderable=self._panel)
        if console.is_terminal:
            self._live.start()

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        # What this step did not measure must not show an old number; evaluations are rare.
        new = "train/samples" in values
        kept = {n: v for n, v in self._latest.items() if not new or n.startswith("eval/")}
        self._latest = kept | dict(values)
        self._seconds = {name: s + values.get(name, 0.0) for name, s in self._seconds.items()}
        self._progress.update(self._bar, completed=min(step + 1, self._total), description=phase)
        if not self._console.is_terminal and (step + 1) % _LINE_EVERY == 0:
            line = f"{phase} {step + 1}: {'  '.join(self._shown())}"
            self._console.print(line, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._live.stop()

    def _panel(self) -> Group:
        total = sum(self._seconds.values()) or 1.0
        shares = [f"{name[5:]} {seconds / total:.0%}" for name, seconds in self._seconds.items()]
        numbers = Columns(map(Text, self._shown()), padding=(0, 2), equal=True)
        return Group(self._progress, numbers, Text(f"time: {', '.join(shares)}"))

    def _shown(self) -> list[str]:
        return [
            f"{metric.label} {self._latest[name]:{metric.format}}"
            for name, metric in METRICS.items()
            if metric.label and name in self._latest
        ]
