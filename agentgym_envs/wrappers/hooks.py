"""Functions by import path: how a user's own code gets into a wrapper whose arguments are JSON."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


def load_hook(path: str) -> Callable[..., Any]:
    """The function at ``"package.module:function"``.

    Args:
        path: the module and the name in it; other processes must be able to import it.

    Raises:
        TypeError: `path` is no text, or there is something else than a function.
        ValueError: it has another form, or there is no such module or name.
    """
    if not isinstance(path, str):
        raise TypeError(f'a hook is an import path "package.module:function", got {path!r}')
    module_name, colon, name = path.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f'a hook is an import path "package.module:function", got {path!r}')
    try:
        hook: Any = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"there is no {name!r} in a module {module_name!r} that can be imported: {error}"
        ) from error
    if not callable(hook):
        raise TypeError(f"{path!r} is no function but {hook!r}")
    function: Callable[..., Any] = hook
    return function
