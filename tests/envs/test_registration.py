import subprocess
import sys

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

import agentgym_envs
from agentgym_envs.errors import UnknownName
from agentgym_envs.registration import register_family, registered_ids, require_id


def test_every_id_is_registered_bare_and_with_a_vector_entry_point():
    assert "AgentGym/BabyAI-v0" in registered_ids()
    for env_id in registered_ids():
        spec = gymnasium.spec(env_id)
        assert spec.entry_point.endswith("Env")
        assert spec.vector_entry_point.endswith(":make_vector")
        assert (spec.order_enforce, spec.disable_env_checker) == (False, True)
        assert spec.max_episode_steps is None
        assert EnvSpec.from_json(spec.to_json()) == spec


def test_registering_twice_changes_nothing():
    before = dict(gymnasium.registry)
    register_family("BabyAI", "another.module")
    assert gymnasium.registry == before


def test_make_returns_the_bare_environment():
    env = gymnasium.make("Test/Counting-v0")
    assert env.unwrapped is env
    assert env.spec.id == "Test/Counting-v0"


@pytest.mark.parametrize("module", ["", "import agentgym_envs; "])
def test_ids_are_found_with_an_import_or_qualified(module):
    env_id = "AgentGym/BabyAI-v0" if module else "agentgym_envs:AgentGym/BabyAI-v0"
    code = f"{module}import gymnasium; gymnasium.envs.registration._find_spec({env_id!r})"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_id_that_is_not_registered_suggests_text_worlds(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "island.py").write_text(
        "import gymnasium\ngymnasium.register('Island-v0', entry_point='island.env:IslandEnv')\n"
    )
    try:
        require_id("AgentGym/TextCraft-v0")
        require_id("island:Island-v0")
        for name, hint in (
            ("TextCraft", "did you mean 'AgentGym/TextCraft-v0'"),
            ("island:Iland-v0", "'Iland-v0'; did you mean 'Island-v0'"),
            (
                "island:Nope",
                "valid are AgentGym/BabyAI-v0, AgentGym/DeepSearch-v0, AgentGym/SciWorld-v0, "
                "AgentGym/TextCraft-v0, Island-v0$",
            ),
        ):
            with pytest.raises(UnknownName, match=hint):
                require_id(name)
    finally:
        gymnasium.registry.pop("Island-v0", None)
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        require_id("nowhere:Island-v0")


def test_public_names_are_found_and_others_are_not():
    for name in agentgym_envs.__all__:
        assert getattr(agentgym_envs, name).__name__ == name
        assert name in dir(agentgym_envs)
    with pytest.raises(AttributeError, match="no attribute 'TextEnvironment'"):
        _ = agentgym_envs.TextEnvironment
