"""Seeds made of what they are for: the same parts give the same seed, everywhere and always."""

from __future__ import annotations

import hashlib
from typing import Any


def stable_seed(*parts: Any) -> int:
    """A 64-bit seed from parts that print the same everywhere, such as names and numbers."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
