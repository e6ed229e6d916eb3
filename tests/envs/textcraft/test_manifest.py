from importlib import resources

from agentgym_envs.manifests import Manifest, verify
from agentgym_envs.tasks import SPLITS, TaskSet
from agentgym_envs.textcraft.certify import certify, write
from agentgym_envs.textcraft.env import TextCraftEnv
from agentgym_envs.textcraft.recipes import default_book
from agentgym_envs.textcraft.tasks import certified_tasks, manifest, tasks_of_book

DATA = resources.files("agentgym_envs.textcraft") / "data"


def text(name):
    return (DATA / name).read_text(encoding="utf-8")


def test_the_tasks_are_those_of_the_manifest():
    verify(manifest(), {split: certified_tasks(split) for split in SPLITS})


def test_an_environment_draws_from_these_tasks():
    for split in SPLITS:
        assert TextCraftEnv(split=split).tasks.digest() == manifest().splits[split].digest


def test_all_goals_are_certified_and_can_be_certified_again_byte_for_byte(tmp_path):
    lines, unsolved = certify(TextCraftEnv(), TaskSet(tasks_of_book(default_book())))
    assert unsolved == {}
    assert "".join(f"{line}\n" for line in lines) == text("goals.txt")
    assert write(tmp_path, lines, unsolved) == manifest()
    assert (tmp_path / "manifest.json").read_text(encoding="utf-8") == text("manifest.json")


def test_the_manifest_is_of_our_recipes_and_leaves_nothing_out():
    notes = manifest().notes
    assert notes["recipes"] == default_book().digest
    assert notes["goals"] == len(default_book().goals) == 551
    assert notes["unsolved"] == {}


def test_the_manifest_counts_families_and_turns():
    notes = manifest().notes["splits"]
    assert {split: note["families"] for split, note in notes.items()} == {
        "train": 98,
        "dev": 14,
        "test": 27,
    }
    turns = [
        (int(length), count)
        for note in notes.values()
        for length, count in note["oracle_turns"].items()
    ]
    assert sum(count for _, count in turns) == 551
    assert max(turns)[0] == 11


def test_a_goal_that_the_oracle_does_not_solve_is_left_out_with_the_reason():
    env = TextCraftEnv(horizon=3)
    tasks = certified_tasks("dev")
    lines, unsolved = certify(env, tasks)
    short = [task.payload["item"] for task in tasks if task.difficulty <= 3]
    assert [line.split(" ", 3)[3] for line in lines] == short
    assert len(unsolved) == len(tasks) - len(short) > 0
    assert set(unsolved.values()) == {"not reached within 3 turns"}


def test_the_data_folder_holds_what_its_readme_lists():
    names = {entry.name for entry in DATA.iterdir()}
    assert names == {
        "README.md",
        "LICENSE-minecraft-data.txt",
        "goals.txt",
        "manifest.json",
        "recipes.json",
    }
    assert all(name in text("README.md") for name in names - {"README.md"})
    assert "MIT License" in text("LICENSE-minecraft-data.txt")
    assert "not an official product" in text("README.md")


def test_a_manifest_reads_as_it_was_written(tmp_path):
    manifest().write(tmp_path / "again.json")
    assert Manifest.read(tmp_path / "again.json") == manifest()
