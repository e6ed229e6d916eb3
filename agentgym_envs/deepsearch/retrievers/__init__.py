"""Search engines over passages; `open_retriever` gives one by name.

An engine is opened when it is first needed, once a process, and shared by all that name it with
the same settings; who closes it closes it for all of them, and it is opened anew when it is needed
again. A process that was forked opens its own.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import threading
from collections.abc import Mapping
from typing import Any

from agentgym_envs import arguments
from agentgym_envs.deepsearch.retrievers.base import Retriever
from agentgym_envs.deepsearch.retrievers.cache import Cached
from agentgym_envs.errors import UnknownName

ENGINES = {
    "fts5": "Fts5Retriever",
    "tantivy": "TantivyRetriever",
    "faiss": "FaissRetriever",
    "http": "HttpRetriever",
    "opensearch": "OpenSearchRetriever",
    "elasticsearch": "ElasticsearchRetriever",
    "qdrant": "QdrantRetriever",
    "hybrid": "HybridRetriever",
}
CACHE_SIZE = 1024


class _Opened:
    """The engines that a process has opened, by their settings."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.RLock()  # a hybrid opens others while it is opened
        self.by_settings: dict[str, Cached] = {}

    def get(self, key: str) -> Cached | None:
        """The engine with these settings, if it is open."""
        engine = self.by_settings.get(key)
        return None if engine is None or engine.is_closed else engine


_opened = _Opened()


def open_retriever(spec: str | Mapping[str, Any]) -> Retriever:
    """The engine that is named, opened if it is not yet.

    Args:
        spec: a name, or an object with a ``name``, the engine's settings, and in ``cache`` how many
            queries are remembered (1024 if left out).

    Raises:
        UnknownName, TypeError, ValueError: there is no such engine or setting.
        InvalidCorpus: its index cannot be used.
        Unsupported: a package that it needs is not installed.
        EnvFault: its service does not answer.
    """
    global _opened
    if _opened.process != os.getpid():
        _opened = _Opened()
    settings = {"name": spec} if isinstance(spec, str) else dict(spec)
    key = json.dumps(settings, sort_keys=True)
    engine = _opened.get(key)
    if engine is None:
        with _opened.lock:
            engine = _opened.get(key) or _open(settings)
            _opened.by_settings[key] = engine
    return engine


def _open(settings: dict[str, Any]) -> Cached:
    name = settings.pop("name", None)
    if name not in ENGINES:
        raise UnknownName("search engine", name, ENGINES)
    cache = arguments.whole_number("cache", settings.pop("cache", CACHE_SIZE), least=0)
    module = importlib.import_module(f"{__name__}.{name}")
    engine = getattr(module, ENGINES[name])
    parameters = inspect.signature(engine).parameters
    for setting in settings:
        if setting not in parameters:
            raise UnknownName(f"setting of the engine {name}", setting, [*parameters, "cache"])
    for setting, parameter in parameters.items():
        if parameter.default is parameter.empty and setting not in settings:
            raise ValueError(f"the engine {name} needs the setting {setting!r}")
    return Cached(engine(**settings), cache)
