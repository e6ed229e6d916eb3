"""Importing the package defines things and does nothing else."""

import json
import subprocess
import sys


def in_a_fresh_interpreter(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )


def test_importing_prints_nothing_and_loads_no_family_or_heavy_library():
    code = """
import sys, json, threading
import gymnasium
before = set(sys.modules)
import agentgym_envs
new = sorted(set(sys.modules) - before)
assert threading.active_count() == 1
sys.__stdout__.write(json.dumps(new))
"""
    done = in_a_fresh_interpreter(code)
    assert done.stderr == ""
    assert json.loads(done.stdout) == ["agentgym_envs", "agentgym_envs.registration"]


def test_importing_everything_of_the_core_needs_numpy_and_gymnasium_only():
    code = """
import sys, json
import gymnasium, gymnasium.utils.env_checker, gymnasium.vector
import agentgym_envs
for name in agentgym_envs.__all__:
    getattr(agentgym_envs, name)
import agentgym_envs.horizons, agentgym_envs.manifests, agentgym_envs.testing, agentgym_envs.cli
heavy = {"minigrid", "torch", "transformers", "matplotlib", "pytest", "hypothesis", "pandas"}
sys.__stdout__.write(json.dumps(sorted(heavy & set(sys.modules))))
"""
    done = in_a_fresh_interpreter(code)
    assert done.stderr == ""
    assert json.loads(done.stdout) == []


def test_importing_does_not_touch_global_randomness():
    code = """
import random, numpy
import gymnasium
before = random.getstate(), numpy.random.get_state()[1].tolist()
import agentgym_envs
[getattr(agentgym_envs, name) for name in agentgym_envs.__all__]
assert (random.getstate(), numpy.random.get_state()[1].tolist()) == before
"""
    in_a_fresh_interpreter(code)
