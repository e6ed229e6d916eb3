"""Counting tokens: words, characters, bytes, a function of the user's, or a tokenizer's ids.

The names need no download and no library. A tokenizer is a folder or file on this machine; it is
read when it is first needed, once a process, by the library `tokenizers`.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from agentgym_envs.arguments import one_of, whole_number
from agentgym_envs.errors import Unsupported
from agentgym_envs.wrappers.hooks import load_hook

if TYPE_CHECKING:
    from tokenizers import Tokenizer

CountTokens = Callable[[str], int]

COUNTS: dict[str, CountTokens] = {
    "words": lambda text: len(text.split()),
    "characters": len,
    "bytes": lambda text: len(text.encode("utf-8", "replace")),
}
"""Ways of counting, by name. Words are what stands between blanks."""


def token_counter(count: str, tokenizer: str | None) -> CountTokens:
    """A function that counts the tokens of a text.

    Args:
        count: a name of `COUNTS`, or the import path ``"package.module:function"`` of a function
            from a text to a number.
        tokenizer: None, or the path of a ``tokenizer.json`` or of a folder that holds one, as
            Hugging Face saves them; `count` then has no part in it.

    Raises:
        UnknownName: no such way of counting.
        ValueError, TypeError: an import path without a function, or no tokenizer there.
        Unsupported: a tokenizer without the library.
    """
    if tokenizer is not None:
        file = _tokenizer_file(tokenizer)
        if importlib.util.find_spec("tokenizers") is None:
            raise Unsupported("a tokenizer needs a library: pip install tokenizers")
        return lambda text: _num_ids(file, text)
    if isinstance(count, str) and ":" in count:
        hook = load_hook(count)
        return lambda text: whole_number(f"what {count} returns", hook(text), least=0)
    return COUNTS[one_of("way of counting tokens", count, COUNTS)]


def _tokenizer_file(path: str) -> str:
    if not isinstance(path, str):
        raise TypeError(f"tokenizer is the path of a folder or file, got {path!r}")
    file = Path(path, "tokenizer.json") if Path(path).is_dir() else Path(path)
    if not file.is_file():
        raise ValueError(
            f"there is no tokenizer at {path!r}: expected a tokenizer.json or a folder with one; "
            "nothing is downloaded"
        )
    return str(file)


def _num_ids(file: str, text: str) -> int:
    return len(_load_tokenizer(file).encode(text, add_special_tokens=False).ids)


@functools.lru_cache(maxsize=8)
def _load_tokenizer(file: str) -> Tokenizer:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(file)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer
