"""The same numbers as TensorBoard events; ``tensorboard --logdir RUN`` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class TensorBoardLogger:
    """Writes scalars under their metric names.

    Args:
        folder: where the event files go.
        resume_at: events of this step and later ones are hidden: they will come again.
    """

    def __init__(self, folder: Path, *, resume_at: int = 0) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder), purge_step=resume_at or None)

    def log(self, step: int, phase: str, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)

    def close(self) -> None:
        self._writer.close()
