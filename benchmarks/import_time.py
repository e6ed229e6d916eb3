"""What `import agentgym_envs` adds to `import gymnasium`, in seconds.

Fresh interpreters, in turns: one imports gymnasium, one imports agentgym_envs, which imports
gymnasium too. Each measures its own import, so starting Python does not count. A first round warms
the file cache and is thrown away.

Prints a JSON line {figure, value, unit, spread, versions}; value is the difference of the medians,
spread the least and greatest difference within a round.

    python benchmarks/import_time.py
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from importlib.metadata import version

_CODE = """
import time
start = time.perf_counter()
import {module}
print(time.perf_counter() - start)
"""


def seconds_to_import(module: str) -> float:
    command = [sys.executable, "-c", _CODE.format(module=module)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    return float(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    modules = ("gymnasium", "agentgym_envs")
    rounds = [[seconds_to_import(module) for module in modules] for _ in range(options.repeats + 1)]
    gymnasium_s, ours_s = zip(*rounds[1:], strict=True)
    differences = [ours - stock for stock, ours in rounds[1:]]
    line = {
        "figure": "import_time/agentgym_envs_beyond_gymnasium",
        "value": round(statistics.median(ours_s) - statistics.median(gymnasium_s), 4),
        "unit": "s",
        "spread": [round(min(differences), 4), round(max(differences), 4)],
        "versions": {
            "agentgym-suite": version("agentgym-suite"),
            "gymnasium": version("gymnasium"),
            "numpy": version("numpy"),
            "python": platform.python_version(),
        },
    }
    print(json.dumps(line))


if __name__ == "__main__":
    main()
