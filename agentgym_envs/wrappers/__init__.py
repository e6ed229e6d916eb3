"""Wrappers over text environments; each does one job.

Those from text to text derive from `TextWrapper`. They are used alone, in stacks and in vectors:

>>> env = History(gymnasium.make("AgentGym/BabyAI-v0"), turns=4)
>>> wrap = functools.partial(History, turns=4)
>>> envs = gymnasium.make_vec("AgentGym/BabyAI-v0", num_envs=8, env_wrappers=[wrap])
"""

from agentgym_envs.wrappers.base import TextWrapper
from agentgym_envs.wrappers.budget import TokenBudget, TurnBudget, WallClockBudget
from agentgym_envs.wrappers.candidate_features import CandidateFeatures
from agentgym_envs.wrappers.candidates import CandidateActions
from agentgym_envs.wrappers.features import ByteIds, HashedText, TextFeatures, TokenIds
from agentgym_envs.wrappers.history import History
from agentgym_envs.wrappers.horizon import HorizonCurriculum
from agentgym_envs.wrappers.invalid_action import InvalidActions
from agentgym_envs.wrappers.record import RecordEpisodes
from agentgym_envs.wrappers.render import RenderText
from agentgym_envs.wrappers.reward import PlayedTurn, RewardShaping
from agentgym_envs.wrappers.space import SpaceWrapper

__all__ = [
    "ByteIds",
    "CandidateActions",
    "CandidateFeatures",
    "HashedText",
    "History",
    "HorizonCurriculum",
    "InvalidActions",
    "PlayedTurn",
    "RecordEpisodes",
    "RenderText",
    "RewardShaping",
    "SpaceWrapper",
    "TextFeatures",
    "TextWrapper",
    "TokenBudget",
    "TokenIds",
    "TurnBudget",
    "WallClockBudget",
]
