"""A family with no picture of its own, as most are."""

from __future__ import annotations

from typing import Any, ClassVar

from counting import CountingEnv


class ProseEnv(CountingEnv):
    """The counter, in words only."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 4}
