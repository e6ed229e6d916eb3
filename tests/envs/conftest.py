"""The families of the tests, registered under ids of their own.

This folder goes onto the path: child processes must be able to import what they are asked to make.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import gymnasium

for name, entry_point in {
    "Counting": "counting:CountingEnv",
    "Faulty": "counting:FaultyEnv",
    "Bare": "counting:BareEnv",
}.items():
    gymnasium.register(
        f"Test/{name}-v0",
        entry_point=entry_point,
        vector_entry_point="counting:make_vector" if name == "Counting" else None,
        order_enforce=False,
        disable_env_checker=True,
    )
