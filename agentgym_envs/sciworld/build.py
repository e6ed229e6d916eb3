"""Make the helper jar from our Java sources: ``python -m agentgym_envs.sciworld.build``.

It needs a JDK of at least version 17 and the PyPI package scienceworld, whose jar the sources are
compiled against. Nothing of that jar goes into ours. The same compiler gives the same bytes.
"""

from __future__ import annotations

import subprocess
import tempfile
import zipfile
from pathlib import Path

from agentgym_envs.sciworld.java_runtime import HELPER_JAR, simulator_jar

SOURCES = Path(__file__).parent / "java"
RELEASE = 17
"""Oldest version of Java that runs the jar."""
MANIFEST = "Manifest-Version: 1.0\nPremain-Class: agentgym.sciworld.HashPatch\n\n"
_OLDEST_DATE = (1980, 1, 1, 0, 0, 0)


def build(jar: Path, *, javac: str = "javac") -> None:
    """Compile the sources into `jar`.

    Args:
        jar: the file to write.
        javac: name or path of the compiler.

    Raises:
        subprocess.CalledProcessError: they do not compile; the compiler's messages are shown.
        FileNotFoundError: there is no such compiler.
    """
    sources = sorted(SOURCES.rglob("*.java"))
    with tempfile.TemporaryDirectory() as folder:
        options = ["--release", str(RELEASE), "-g:none", "-Xlint:all,-processing", "-Werror"]
        paths = ["-classpath", str(simulator_jar()), "-d", folder]
        subprocess.run([javac, *options, *paths, *map(str, sources)], check=True)
        classes = sorted(Path(folder).rglob("*.class"))
        draft = jar.with_suffix(".draft")  # a server may have the old file open
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(zipfile.ZipInfo("META-INF/MANIFEST.MF", _OLDEST_DATE), MANIFEST)
            for path in classes:
                name = path.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name, _OLDEST_DATE), path.read_bytes())
        draft.replace(jar)


def main() -> None:
    """Write the jar of the package."""
    build(HELPER_JAR)


if __name__ == "__main__":
    main()
