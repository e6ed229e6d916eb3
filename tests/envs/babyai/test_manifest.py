import gzip
from collections import Counter
from importlib import resources

import pytest

from agentgym_envs.babyai.certify import MANY, SOME, certify, write_level
from agentgym_envs.babyai.levels import AGENTGYM, RED_BALL, SINGLE_ROOM, all_levels
from agentgym_envs.babyai.tasks import DIGEST_LENGTH, certified_tasks, manifest, split_of
from agentgym_envs.manifests import verify
from agentgym_envs.tasks import SPLITS

DATA = resources.files("agentgym_envs.babyai") / "data"


def rows(level):
    return gzip.decompress((DATA / f"{level}.txt.gz").read_bytes()).decode().splitlines()


def levels_with_tasks():
    return sorted({level for split in SPLITS for level in manifest().splits[split].categories})


def test_the_tasks_are_those_of_the_manifest():
    verify(manifest(), {split: certified_tasks(split, all_levels()) for split in SPLITS})


def test_there_is_a_file_for_every_level_with_tasks_and_no_other():
    files = {entry.name for entry in DATA.iterdir()} - {"manifest.json"}
    assert files == {f"{level}.txt.gz" for level in levels_with_tasks()}
    assert sum(len((DATA / name).read_bytes()) for name in files) < 2_000_000


def test_almost_all_of_agentgyms_levels_have_tasks_in_every_split():
    for split in SPLITS:
        assert len(set(AGENTGYM) & set(manifest().splits[split].categories)) >= 39


def test_the_levels_of_training_runs_have_the_most_tasks():
    for split in SPLITS:
        counts = manifest().splits[split].categories
        assert {counts[level] for level in RED_BALL + SINGLE_ROOM} == {MANY[split]}
        others = set(counts).difference(RED_BALL + SINGLE_ROOM)
        assert max(counts[level] for level in others) == SOME[split]


def test_every_level_is_in_the_notes_and_those_without_tasks_say_why():
    notes = manifest().notes["levels"]
    assert set(notes) == set(all_levels())
    for level in set(notes).difference(levels_with_tasks()):
        assert notes[level]["unsolved_share"] == 1


def test_no_layout_is_in_two_splits_of_any_levels():
    splits_of = {}
    for level in levels_with_tasks():
        for row in rows(level):
            split, _, _, digest, _ = row.split(" ", 4)
            assert len(digest) == DIGEST_LENGTH
            assert split_of(digest) == split
            splits_of.setdefault(digest, set()).add(split)
    assert Counter(map(len, splits_of.values())).keys() == {1}


def test_the_seeds_of_a_split_rise_and_none_is_in_two():
    for level in levels_with_tasks():
        seeds = {split: [] for split in SPLITS}
        for row in rows(level):
            split, seed, *_ = row.split(" ")
            seeds[split].append(int(seed))
        assert all(found == sorted(found) for found in seeds.values())
        everything = [seed for found in seeds.values() for seed in found]
        assert len(set(everything)) == len(everything)


@pytest.mark.parametrize("level", ["GoToRedBall", "PickupDist", "Unlock", "BossLevel"])
def test_the_first_rows_can_be_made_again(level):
    wanted = {"train": 20, "dev": 2, "test": 3}
    found = certify(level, wanted)
    for split in SPLITS:
        of_split = [row for row in rows(level) if row.startswith(f"{split} ")]
        assert found.rows[split] == of_split[: wanted[split]]


def test_equal_rows_give_equal_files(tmp_path):
    for folder in (tmp_path / "a", tmp_path / "b"):
        folder.mkdir()
        write_level(folder, "GoToRedBall", rows("GoToRedBall"))
    made = (tmp_path / "a" / "GoToRedBall.txt.gz").read_bytes()
    assert made == (tmp_path / "b" / "GoToRedBall.txt.gz").read_bytes()
    assert made[4:8] == bytes(4)  # the time of writing


def test_a_level_with_few_layouts_ends_when_no_new_ones_come():
    found = certify("OpenRedDoor", {"train": 1000, "dev": 1000, "test": 1000})
    assert found.num_tasks + found.num_repeats == found.num_seeds < 2000
    assert found.num_tasks == len({row.split(" ")[3] for r in found.rows.values() for row in r})
