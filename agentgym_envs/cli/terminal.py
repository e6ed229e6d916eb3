"""Lines from a person: with a history and completion where there is a terminal and readline."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence


def complete_with(candidates: Callable[[], Sequence[str]]) -> None:
    """Make Tab complete whole lines in `input`, which then also keeps a history.

    Args:
        candidates: gives the lines that could be meant; called once each Tab.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return
    try:
        import readline
    except ImportError:  # not everywhere; lines are read without it
        return
    readline.set_completer(Completer(candidates))
    readline.set_completer_delims("")
    is_libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if is_libedit else "tab: complete")


class Completer:
    """What readline calls with 0, 1, 2, … until it gets None.

    Args:
        candidates: gives the lines that could be meant.
    """

    def __init__(self, candidates: Callable[[], Sequence[str]]) -> None:
        self._candidates = candidates
        self._found: list[str] = []

    def __call__(self, text: str, state: int) -> str | None:
        if state == 0:
            begun = text.casefold()
            self._found = [one for one in self._candidates() if one.casefold().startswith(begun)]
        return self._found[state] if state < len(self._found) else None
