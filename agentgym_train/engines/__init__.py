"""Engines: they sample replies, token ids in and token ids out. See `base` for the contract.

Importing this package imports no engine; each lives in a module of its own and brings its own
libraries.
"""

from agentgym_train.engines.base import Completion, Engine, FinishReason, Request

__all__ = ["Completion", "Engine", "FinishReason", "Request"]
