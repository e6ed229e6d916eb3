from pathlib import Path

import pytest

from agentgym_envs.errors import Unsupported
from agentgym_envs.sciworld import oracle
from agentgym_envs.sciworld.java_runtime import java_command
from agentgym_envs.sciworld.oracle import gold_folder


def test_a_runtime_may_be_named_as_seen_from_here(tmp_path, monkeypatch):
    (tmp_path / "java").touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTGYM_JAVA", "./java")
    assert java_command() == str(tmp_path / "java")
    monkeypatch.setenv("AGENTGYM_JAVA", "./nothing")
    with pytest.raises(Unsupported, match=r"AGENTGYM_JAVA names './nothing', which is no program"):
        java_command()


def test_who_names_a_cache_needs_no_home(tmp_path, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    monkeypatch.setenv("AGENTGYM_CACHE", str(tmp_path))
    assert gold_folder().parent == tmp_path


def test_gold_actions_of_another_helper_jar_are_not_used(tmp_path, monkeypatch):
    ours = gold_folder()
    (tmp_path / "other.jar").write_bytes(b"another")
    monkeypatch.setattr(oracle, "HELPER_JAR", tmp_path / "other.jar")
    assert gold_folder() != ours
