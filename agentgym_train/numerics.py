"""Numbers that are not finite: named before they reach a weight, and written down.

The learner looks at everything it was given and everything it computes, and stops at the first
number that is NaN, infinite or too large for fp32. A folder beside the checkpoints then holds the
batch, since the next run would meet other numbers:

::

    nonfinite-000012/
      error.txt             what was not finite, and in which episode
      episodes.jsonl        the episodes of the step
      samples.safetensors   their arrays as far as they came, "0003.advantages"; the metadata says
                            which episode 0003 is
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from safetensors.numpy import save_file

from agentgym_envs.episodes import Episode, write_episodes
from agentgym_train.batching import OPTIONAL_NUMBERS, Sample
from agentgym_train.errors import NonFinite

_LARGEST = float(np.finfo(np.float32).max)


def find_nonfinite(
    samples: Sequence[Sample], numbers: Mapping[str, Sequence[ArrayLike | None]]
) -> str:
    """The first number that is not finite, in words; "" if there is none.

    Args:
        samples: what the numbers belong to.
        numbers: by name, those of each sample; None where there are none.
    """
    for name, of_samples in numbers.items():
        for sample, values in zip(samples, of_samples, strict=True):
            flat = np.ravel([] if values is None else np.asarray(values))
            bad = flat[~(np.abs(flat) <= _LARGEST)]
            if len(bad):
                return f"{name} {bad[0]} in {sample.origin}"
    return ""


def find_nonfinite_sample(samples: Sequence[Sample]) -> str:
    """The same for everything that samples hold; causes come before their effects."""
    names = ("rewards", *OPTIONAL_NUMBERS, "final_value")
    return find_nonfinite(samples, {name: [getattr(s, name) for s in samples] for name in names})


@contextlib.contextmanager
def dump_nonfinite(folder: Path, episodes: Iterable[Episode]) -> Iterator[None]:
    """If a number is not finite inside, write the batch into `folder`.

    Args:
        folder: created when needed; files of an earlier dump are replaced.
        episodes: what the step was to learn from.

    Raises:
        NonFinite: as raised inside, with the folder in its text.
    """
    try:
        yield
    except NonFinite as error:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "error.txt").write_text(f"{error}\n", encoding="utf-8")
        write_episodes(folder / "episodes.jsonl", episodes)
        arrays = {
            f"{number:04d}.{name}": np.ascontiguousarray(values)
            for number, sample in enumerate(error.samples)
            for name, values in vars(sample).items()
            if isinstance(values, np.ndarray)
        }
        origins = {f"{number:04d}": sample.origin for number, sample in enumerate(error.samples)}
        save_file(arrays, folder / "samples.safetensors", metadata=origins)
        raise NonFinite(f"{error}; the batch is in {folder}", error.samples) from None
