"""The prompts of a task are the same whatever the process, the hash seed and the directory."""

import hashlib
import json
import os
import random
import subprocess
import sys

import gymnasium
import numpy as np
import pytest

import agentgym_envs  # noqa: F401

PROMPTS = """
import hashlib, json, os, sys

order, folder = sys.argv[1:]
scandir = os.scandir


class InOrder:
    def __init__(self, path="."):
        with scandir(path) as entries:
            self._entries = sorted(entries, key=lambda entry: entry.name)
        if order == "backwards":
            self._entries.reverse()
        if order == "turned":
            self._entries = self._entries[7:] + self._entries[:7]

    def __enter__(self):
        return iter(self._entries)

    def __exit__(self, *error):
        pass


import gymnasium, agentgym_envs

os.scandir = InOrder
digests = []
for arguments in ({}, {"recipes_dir": folder}):
    for compat in (None, "agentgym"):
        env = gymnasium.make("AgentGym/TextCraft-v0", compat=compat, **arguments)
        digest = hashlib.sha256()
        for task in env.unwrapped.tasks[::9]:
            observation, info = env.reset(options={"task": task})
            digest.update(json.dumps([observation, info, env.unwrapped.admissible()]).encode())
        digests.append(digest.hexdigest())
print(json.dumps(digests))
"""


def digests(folder, *, hash_seed, order):
    done = subprocess.run(
        [sys.executable, "-c", PROMPTS, order, str(folder)],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        stdout=subprocess.PIPE,
        check=True,
        timeout=240,
    )
    return json.loads(done.stdout)


def test_prompts_depend_neither_on_hash_seed_nor_directory_order_nor_process(large_folder):
    first = digests(large_folder, hash_seed="0", order="as it is")
    assert len(set(first)) == 4
    for hash_seed, order in (("0", "as it is"), ("1", "backwards"), ("2", "turned")):
        assert digests(large_folder, hash_seed=hash_seed, order=order) == first


def test_the_order_in_which_files_were_made_is_no_part_of_the_prompts(small_folder, tmp_path):
    names = sorted(file.name for file in small_folder.iterdir())
    prompts = set()
    for seed in range(3):
        folder = tmp_path / str(seed)
        folder.mkdir()
        random.Random(seed).shuffle(names)
        for name in names:
            (folder / name).write_bytes((small_folder / name).read_bytes())
        for compat in (None, "agentgym"):
            env = gymnasium.make("AgentGym/TextCraft-v0", compat=compat, recipes_dir=str(folder))
            for task in env.unwrapped.tasks:
                text, _ = env.reset(options={"task": task})
                prompts.add((compat, task.id, hashlib.sha256(text.encode()).hexdigest()))
    assert len(prompts) == len({(compat, task_id) for compat, task_id, _ in prompts})


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_global_generators_are_neither_read_nor_moved(compat):
    observations = []
    for seed in (1, 2):
        random.seed(seed)
        np.random.seed(seed)
        before = random.getstate(), np.random.get_state()[1].tolist()
        env = gymnasium.make("AgentGym/TextCraft-v0", compat=compat, info_keys=("admissible",))
        observations.append(env.reset(seed=5))
        for command in observations[-1][1]["admissible"][:5]:
            env.step(command)
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before
    assert observations[0] == observations[1]


def test_the_prompt_of_a_task_is_fixed_for_good():
    """A change of this digest changes what is compared across versions of the package."""
    env = gymnasium.make("AgentGym/TextCraft-v0")
    text, _ = env.reset(options={"task": "textcraft/train/iron_pickaxe"})
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    assert digest == "d99ad1dded74c09b"
