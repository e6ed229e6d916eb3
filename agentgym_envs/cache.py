"""Where this suite keeps what takes long to make: gold actions, indexes, unpacked models."""

from __future__ import annotations

import os
from pathlib import Path

VARIABLE = "AGENTGYM_CACHE"


def cache_folder() -> Path:
    """The folder that ``AGENTGYM_CACHE`` names, else ``agentgym`` in the user's cache folder; it
    need not exist.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentgym"
