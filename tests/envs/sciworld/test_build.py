"""The jar of the package is what its sources give."""

import shutil
import zipfile

import pytest

from agentgym_envs.sciworld import java_runtime
from agentgym_envs.sciworld.backend import Server
from agentgym_envs.sciworld.build import build


def transcript():
    host = Server(1)
    try:
        texts = host.call(1, ["load", "grow-fruit", "0", "openDoors"], 60)
        for line in ("go to greenhouse", "wait", "open door", "0", "dragon", "look around"):
            texts += host.call(1, ["step", line], 60)
        return texts + host.call(1, ["valid"], 60) + host.call(1, ["state"], 60)
    finally:
        host.close()


@pytest.mark.skipif(shutil.which("javac") is None, reason="needs a Java compiler")
def test_a_jar_built_from_the_sources_behaves_as_the_one_of_the_package(tmp_path, monkeypatch):
    shipped = transcript()
    jar = tmp_path / "again.jar"
    build(jar)
    with zipfile.ZipFile(jar) as again, zipfile.ZipFile(java_runtime.HELPER_JAR) as package:
        assert again.namelist() == package.namelist()
    monkeypatch.setattr(java_runtime, "HELPER_JAR", jar)
    assert transcript() == shipped


def test_the_jar_holds_no_class_of_the_simulator_but_the_stand_ins():
    with zipfile.ZipFile(java_runtime.HELPER_JAR) as package:
        names = [name for name in package.namelist() if not name.startswith("agentgym/")]
    assert names == [
        "META-INF/MANIFEST.MF",
        "main/scala/scienceworld/runtime/SimplifierProcessor$.class",
        "scala/util/Random$.class",
        "util/UniqueIdentifier$.class",
        "util/UniqueTypeID$.class",
    ]
