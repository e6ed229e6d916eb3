"""The live view of a run in a terminal: progress, what the policy does, where the time goes.

On a terminal one panel is redrawn in place; elsewhere (a file, CI) a line is written every few
steps. It shows numbers that `agentgym_train.metrics` defines and computes none.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

_ROWS = (
    (("success", "rollout/success", "{:.0%}"), ("entropy", "train/entropy", "{:.3f}")),
    (("return", "rollout/return", "{:.3f}"), ("KL (k3)", "train/kl_k3", "{:.4f}")),
    (("horizon", "rollout/horizon", "{:.0f}"), ("clipped", "train/clip_share", "{:.1%}")),
    (("turns", "rollout/turns", "{:.1f}"), ("grad norm", "train/grad_norm", "{:.2f}")),
    (("invalid", "rollout/invalid", "{:.0%}"), ("loss", "train/loss", "{:.4f}")),
    (("useful", "rollout/useful", "{:.0%}"), ("dev success", "eval/success", "{:.1%}")),
    (
        ("sampled/s", "speed/sampled_tokens", "{:,.0f}"),
        ("trained/s", "speed/train_tokens", "{:,.0f}"),
    ),
)
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
        self._times = dict.fromkeys(_TIMES, 0.0)
        self._progress = Progress(
            TextColumn("{task.description:<8}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._bar = self._progress.add_task("start", total=total, completed=done)
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(self._panel(), console=console, refresh_per_second=4)
            self._live.start()

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        if "train/samples" in values:  # what this step did not measure must not show an old number
            self._latest = {n: v for n, v in self._latest.items() if n.startswith("eval/")}
        self._latest |= values
        for name in _TIMES:
            self._times[name] += values.get(name, 0.0)
        self._progress.update(self._bar, completed=min(step + 1, self._total), description=phase)
        if self._live is not None:
            self._live.update(self._panel())
        elif (step + 1) % _LINE_EVERY == 0:
            self._console.print(self._line(step, phase), highlight=False, soft_wrap=True)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _panel(self) -> Group:
        table = Table.grid(padding=(0, 2))
        for row in _ROWS:
            table.add_row(*[cell for entry in row for cell in (entry[0], self._value(entry))])
        return Group(self._progress, table, self._time_line())

    def _value(self, entry: tuple[str, str, str]) -> str:
        _, name, form = entry
        return form.format(self._latest[name]) if name in self._latest else "–"

    def _time_line(self) -> Text:
        total = sum(self._times.values()) or 1.0
        shares = (
            f"{name.removeprefix('time/')} {t / total:.0%}" for name, t in self._times.items()
        )
        return Text("time: " + ", ".join(shares))

    def _line(self, step: int, phase: str) -> str:
        entries = [entry for row in _ROWS for entry in row if entry[1] in self._latest]
        shown = "  ".join(f"{entry[0]} {self._value(entry)}" for entry in entries)
        return f"{phase} {step + 1}: {shown}"
