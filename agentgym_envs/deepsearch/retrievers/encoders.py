"""Encoders: texts as vectors, for the engines that compare those.

Which model makes them is the user's affair, and its library, too. An encoder is named either as
``"package.module:function"``, a function from a list of texts to an array of float [N, D], or as an
object with the ``url`` of a service that speaks ``/v1/embeddings``, with its ``model``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentgym_envs.deepsearch.retrievers.http import headers_with_token
from agentgym_envs.deepsearch.retrievers.json_http import JsonHttp
from agentgym_envs.errors import EnvFault, UnknownName, Unsupported

Vectors = NDArray[np.float32]
_SETTINGS = ("url", "model", "token_variable", "timeout_s")


class Encoder:
    """Makes vectors of one length.

    Args:
        name: a function or service, see the head of this file.
        prefix: put in front of every text; E5 models want ``"query: "`` and ``"passage: "``.

    Raises:
        Unsupported: there is no such function.
        TypeError, ValueError: `name` names nothing.
    """

    def __init__(self, name: str | Mapping[str, Any], prefix: str = "") -> None:
        self._name = name
        self._prefix = prefix
        self._service = _Service(name) if isinstance(name, Mapping) else None
        self._encode = self._service.encode if self._service else _function(name)

    def encode(self, texts: Sequence[str]) -> Vectors:
        """The vectors of N texts, [N, D].

        Raises:
            EnvFault: the encoder breaks, or gives something else.
        """
        try:
            given = self._encode([self._prefix + text for text in texts])
            vectors = np.ascontiguousarray(given, dtype=np.float32)
        except EnvFault:
            raise
        except Exception as error:  # it is not ours, and nothing is known of it
            raise EnvFault(f"the encoder {self._name} fails: {error!r:.300}") from error
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise EnvFault(
                f"the encoder {self._name} should give {len(texts)} vectors of finite numbers, "
                f"got an array of shape {vectors.shape}"
            )
        return vectors

    def close(self) -> None:
        """Give connections back."""
        if self._service:
            self._service.close()


def _function(name: object) -> Callable[[list[str]], Any]:
    if not isinstance(name, str) or name.count(":") != 1:
        raise ValueError(
            "expected an encoder as 'package.module:function' or as an object with a 'url', "
            f"got {name!r:.80}"
        )
    module, _, attribute = name.partition(":")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise Unsupported(f"there is no encoder {name}: {error}") from error
    if not callable(function):
        raise TypeError(f"the encoder {name} is no function")
    found: Callable[[list[str]], Any] = function
    return found


class _Service:
    """Asks a service that speaks ``/v1/embeddings``."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        for setting in settings:
            if setting not in _SETTINGS:
                raise UnknownName("setting of an encoder", setting, _SETTINGS)
        headers = headers_with_token(settings.get("token_variable"))
        self._http = JsonHttp(settings.get("url", ""), headers)
        self._model = settings.get("model", "")
        self._timeout_s = float(settings.get("timeout_s", 10.0))

    def encode(self, texts: list[str]) -> Any:
        """The vectors as lists of numbers."""
        body = {"model": self._model, "input": texts}
        rows = self._http.post("/v1/embeddings", body, self._timeout_s)["data"]
        return [row["embedding"] for row in sorted(rows, key=lambda row: row["index"])]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()
