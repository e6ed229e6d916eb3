"""Wrappers over text environments; each does one job and derives from `TextWrapper`."""

from agentgym_envs.wrappers.base import TextWrapper

__all__ = ["TextWrapper"]
