"""The script of hostile replies: it passes on what is here, and sees what is wrong."""

import json
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "hostile.py"


def run(*words, code=""):
    command = [sys.executable, *(["-c", code] if code else [str(SCRIPT)]), *words]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, cwd=SCRIPT.parent
    )


def figures(output):
    lines = [json.loads(line) for line in output.splitlines()]
    return {line["figure"].partition("/")[2]: line for line in lines}


def test_fifty_thousand_hostile_replies_do_no_harm():
    done = run("--actions", "50000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    found = figures(done.stdout)
    assert found["actions"]["value"] == 50_000
    assert found["actions"]["carried_out"] > 5_000
    assert found["problems"]["value"] == found["output"]["value"] == 0
    assert found["memory_growth"]["value"] < found["memory_growth"]["bound"]


BREAKS = {
    "raises": ("raise KeyError('a bug')", "problems", "KeyError: 'a bug'"),
    "prints": ("print('oops')", "output", "oops"),
    "writes from outside Python": ("os.write(2, b'oops')", "output", "oops"),
    "warns": ("warnings.warn('oops')", "output", "UserWarning: oops"),
    "plays for free": ("self._turn -= 1", "problems", " is counted as "),
    "is no text": ("self._clean = lambda text: chr(0xD800)", "problems", "is not in its space"),
    "grows": ("kept.append(b'x' * 4_000_000)", "memory_growth", "MiB"),
}


def test_the_script_sees_what_is_wrong_with_an_environment():
    code = """
import json, os, sys, warnings
import gymnasium, hostile
from agentgym_envs.babyai.env import BabyAIEnv
play, kept = BabyAIEnv._execute, []
breaks = json.loads(sys.argv.pop(1))
for breaking in breaks:
    def execute(self, command):
        exec(breaking)
        return play(self, command)
    BabyAIEnv._execute = execute
    assert hostile.main() == 1
"""
    breaks = json.dumps([breaking for breaking, _, _ in BREAKS.values()])
    done = run(breaks, "--actions", "2000", code=code)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    for number, (name, (_, figure, message)) in enumerate(BREAKS.items()):
        found = figures("\n".join(lines[4 * number : 4 * number + 4]))
        assert found[figure]["value"] > 0, name
        assert message in json.dumps(found), name


def test_equal_seeds_give_equal_replies_in_every_process():
    code = """
import random, gymnasium, agentgym_envs
from attacker import Attacker
env = gymnasium.make("AgentGym/BabyAI-v0")
env.reset(seed=0)
attacker = Attacker(env, random.Random("0"))
print([attacker.reply().encode(errors="surrogatepass") for _ in range(300)])
"""
    first, second = (run(code=code) for _ in range(2))
    assert first.stdout == second.stdout
    assert len(set(first.stdout)) > 50
