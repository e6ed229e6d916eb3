"""Checkpoints: all or nothing, and nothing in them is executed.

::

    checkpoints/step-000120/
      model/                 a Hugging Face folder: weights, config, tokenizer, chat template
      tensors.safetensors    optimizer, random states, reference: every other tensor
      state.json             counters, settings, fingerprints: everything that is not a tensor
      index.json             size and SHA-256 of each file above; written last

A checkpoint is written into a hidden folder beside its final place, flushed to the disk, and
renamed. A folder whose index does not match its files is not a checkpoint: `find_checkpoint`
passes it over. The newest few are kept, and beside them the one that ``state["best"]`` names. One
process writes into a folder of checkpoints at a time.

Left out: tensors in several files for several ranks.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from agentgym_envs.evaluation.plan import differences
from agentgym_train.errors import CheckpointError
from agentgym_train.model import save_model

logger = logging.getLogger(__name__)

CHECKPOINT_SCHEMA = 1

_INDEX = "index.json"
_STATE = "state.json"
_TENSORS = "tensors.safetensors"
_MODEL = "model"
_WRITING = ".writing-"
_REPLACED = ".replaced-"
_NAME = re.compile(rf"({re.escape(_REPLACED)})?step-(\d+)")


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that was read and found whole.

    Attributes:
        path: its folder.
        tensors: what `save_checkpoint` was given, on the CPU.
        state: what `save_checkpoint` was given.
    """

    path: Path
    tensors: dict[str, torch.Tensor]
    state: dict[str, Any]

    @property
    def model_folder(self) -> Path:
        """The Hugging Face folder of model and tokenizer."""
        return self.path / _MODEL


def save_checkpoint(
    folder: str | Path,
    *,
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    tensors: Mapping[str, torch.Tensor],
    state: Mapping[str, Any],
    keep: int,
) -> Path:
    """Write ``step-<number>`` into `folder` and delete the oldest.

    Args:
        folder: the folder of checkpoints; created if missing.
        model: saved in its own precision.
        tokenizer: saved beside it.
        tensors: every other tensor, by name.
        state: JSON values; ``state["step"]`` is the number of the checkpoint, and
            ``state["best"]["step"]``, if it is there, that of one which is never deleted.
        keep: how many of the newest checkpoints to keep, this one included.

    Returns:
        The checkpoint's folder. A checkpoint of the same step is replaced.

    Raises:
        CheckpointError: it could not be written, as on a full disk. Nothing of it is left, and
            older checkpoints are as before.
    """
    folder = Path(folder)
    final = _path_of(folder, state["step"])
    writing = folder / (_WRITING + final.name)
    try:
        _finish_replacements(folder)
        for leftover in folder.glob(_WRITING + "*"):
            shutil.rmtree(leftover)
        (writing / _MODEL).mkdir(parents=True)
        save_model(model, tokenizer, writing / _MODEL)
        on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
        save_file(on_cpu, writing / _TENSORS)
        _write_json(writing / _STATE, state)
        _write_index(writing)
        _move(writing, final)
    except Exception as error:
        # For a full disk the tokenizers library raises the base class itself.
        if type(error) is not Exception and not isinstance(error, OSError | SafetensorError):
            raise
        raise CheckpointError(
            f"cannot save the checkpoint {final}: {error}; free space or choose another folder, "
            "older checkpoints are still good"
        ) from error
    finally:
        shutil.rmtree(writing, ignore_errors=True)
    best = _path_of(folder, (state.get("best") or state)["step"])
    others = [path for path in _newest_first(folder) if path not in (final, best)]
    for path in others[max(0, keep - 1) :]:
        shutil.rmtree(path, ignore_errors=True)
    return final


def _path_of(folder: Path, step: int) -> Path:
    return folder / f"step-{step:06d}"


def _write_json(path: Path, data: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def _write_index(folder: Path) -> None:
    """Flush all that is in the folder, and seal it."""
    paths = sorted(folder.rglob("*"))
    for path in paths:
        _flush(path)
    files = {path.relative_to(folder).as_posix(): _digest(path) for path in paths if path.is_file()}
    _write_json(folder / _INDEX, {"schema": CHECKPOINT_SCHEMA, "files": files})
    _flush(folder / _INDEX)
    _flush(folder)


def _digest(path: Path) -> dict[str, int | str]:
    with open(path, "rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _flush(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _move(writing: Path, final: Path) -> None:
    # No portable call swaps two full folders, so a checkpoint of the same step steps aside.
    if final.exists():
        os.rename(final, final.with_name(_REPLACED + final.name))
    os.rename(writing, final)
    _flush(final.parent)
    _finish_replacements(final.parent)


def _finish_replacements(folder: Path) -> None:
    """Delete checkpoints that were replaced; put back those whose successor never came."""
    for replaced in folder.glob(_REPLACED + "*"):
        final = folder / replaced.name.removeprefix(_REPLACED)
        if final.exists():
            shutil.rmtree(replaced)
        else:
            os.rename(replaced, final)


def _newest_first(folder: Path) -> dict[Path, int]:
    """Folders named like checkpoints, and their steps; of one step, one that was being replaced
    comes last.
    """
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("*")]
    keyed = [(int(match[2]), match[1] is None, path) for match, path in found if match]
    return {path: step for step, _, path in sorted(keyed, reverse=True)}


def find_checkpoint(folder: str | Path, which: str = "last") -> Path:
    """The checkpoint that a person means.

    Changes nothing, so it may be called while another process saves.

    Args:
        folder: the folder of checkpoints.
        which: ``"last"``, the newest that is whole, broken ones are logged and passed over;
            ``"best"``, that with the highest held-out success, of equals the earliest; or the
            number of a step.

    Raises:
        CheckpointError: there is none, or it is broken; the text lists the steps that are there.
    """
    found, wanted = _newest_first(Path(folder)), which
    if which == "best" and found:
        best = _read(find_checkpoint(folder), _STATE).get("best")
        if best is None:
            raise CheckpointError(
                f"no checkpoint in {folder} was evaluated on held-out tasks; choose a step, or "
                "start a run with eval.every above 0"
            )
        wanted = str(best["step"])
    for path in [path for path, step in found.items() if wanted in ("last", str(step))]:
        try:
            _verify(path)
        except CheckpointError as error:
            logger.warning("passing over a broken checkpoint: %s", error)
        else:
            return path
    steps = ", ".join(map(str, sorted(set(found.values()))))
    raise CheckpointError(
        f"no whole checkpoint {which!r} in {folder}, expected 'last', 'best' or a step of {steps}"
        if found
        else f"no checkpoint in {folder}; start the run anew in another folder"
    )


def delete_later(folder: str | Path, step: int) -> list[int]:
    """Delete the checkpoints after `step`, the newest first; gives their steps."""
    later = {path: found for path, found in _newest_first(Path(folder)).items() if found > step}
    for path in later:
        shutil.rmtree(path)
    return sorted(set(later.values()))


def load_checkpoint(
    path: str | Path, *, fingerprint: Mapping[str, Any] | None = None
) -> Checkpoint:
    """Read a checkpoint and check every file against its index.

    Args:
        path: its folder.
        fingerprint: what ``state["fingerprint"]`` must equal: settings and digests of data.

    Raises:
        CheckpointError: it is missing or broken, or its fingerprint differs.
    """
    path = Path(path)
    _verify(path)
    state = _read(path, _STATE)
    if fingerprint is not None:
        check_fingerprint(fingerprint, state.get("fingerprint", {}))
    return Checkpoint(path, load_file(path / _TENSORS), state)


def _read(path: Path, name: str) -> dict[str, Any]:
    try:
        data = json.loads((path / name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckpointError(f"{path} is no whole checkpoint: {error!r}") from None
    if not isinstance(data, dict):
        raise CheckpointError(f"{path} is no whole checkpoint: {name} holds no table")
    return data


def _verify(path: Path) -> None:
    """Refuse a folder whose files differ from its index."""
    index = _read(path, _INDEX)
    if index.get("schema") != CHECKPOINT_SCHEMA:
        raise CheckpointError(
            f"{path} has checkpoint schema {index.get('schema')!r}, expected {CHECKPOINT_SCHEMA}; "
            "read it with the version of agentgym_train that wrote it"
        )
    files = index.get("files", {})
    if not {_STATE, _TENSORS} <= files.keys():
        raise CheckpointError(f"{path} is no whole checkpoint: its index names too few files")
    for name, expected in files.items():
        try:
            found = _digest(path / name)
        except OSError as error:
            raise CheckpointError(f"{path}: {name} cannot be read: {error.strerror}") from None
        if found != expected:
            raise CheckpointError(f"{path}: {name} is damaged, expected {expected}, got {found}")


def check_fingerprint(expected: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    """Refuse a checkpoint of other settings or other data.

    Args:
        expected: JSON values of this run, nested as they like.
        found: those in the checkpoint.

    Raises:
        CheckpointError: they differ; the text names the keys and both values.
    """
    if differing := differences(found, expected):
        shown = [
            f"{key} is {one} there and {other} here" for key, (one, other) in differing.items()
        ]
        more = f"; and {len(shown) - 5} more" if len(shown) > 5 else ""
        raise CheckpointError(
            f"the checkpoint belongs to another run: {'; '.join(shown[:5])}{more}; use the "
            "settings and data it was made with, or start a new run"
        )


def random_states() -> dict[str, torch.Tensor]:
    """The states of torch's global generators, as uint8 tensors by name.

    Numpy's and Python's are not there: nothing in this package draws from them.
    """
    states = {"random.cpu": torch.get_rng_state()}
    cuda = enumerate(torch.cuda.get_rng_state_all())
    return states | {f"random.cuda.{index}": state for index, state in cuda}


def restore_random_states(tensors: Mapping[str, torch.Tensor]) -> None:
    """Set torch's global generators to what `random_states` gave.

    Other tensors are ignored, and so are the states of GPUs that are not there.

    Raises:
        CheckpointError: the state of the CPU's generator is missing.
    """
    if "random.cpu" not in tensors:
        raise CheckpointError("the checkpoint holds no random state: 'random.cpu' is missing")
    torch.set_rng_state(tensors["random.cpu"])
    for index in range(torch.cuda.device_count()):
        if (name := f"random.cuda.{index}") in tensors:
            torch.cuda.set_rng_state(tensors[name], index)
