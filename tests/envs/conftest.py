"""The families of the tests, registered under ids of their own.

This folder goes onto the path: child processes must be able to import what they are asked to make.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gymnasium
import pytest
from counting import FaultyEnv

from agentgym_envs.vector import TextVectorEnv

for name, entry_point in {
    "Counting": "counting:CountingEnv",
    "Faulty": "counting:FaultyEnv",
    "Bare": "counting:BareEnv",
    "Coy": "counting:CoyEnv",
}.items():
    gymnasium.register(
        f"Test/{name}-v0",
        entry_point=entry_point,
        vector_entry_point="counting:make_vector" if name == "Counting" else None,
        order_enforce=False,
        disable_env_checker=True,
    )


@pytest.fixture
def make_vector():
    """Makes vector environments and closes them after the test."""
    made = []

    def make(env="Test/Counting-v0", num_envs=3, **kwargs):
        made.append(TextVectorEnv(env, num_envs, **kwargs))
        return made[-1]

    yield make
    for env in made:
        env.close()


@pytest.fixture
def faulty(make_vector):
    """Like `make_vector` for environments that break when told to."""
    FaultyEnv.broken_resets = FaultyEnv.broken_builds = 0
    FaultyEnv.built = []
    return lambda num_envs=3, **kwargs: make_vector("Test/Faulty-v0", num_envs, **kwargs)
