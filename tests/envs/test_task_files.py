import json

import pytest

from agentgym_envs.errors import InvalidTask
from agentgym_envs.task_files import check_entries, entry_id, read_task_entries


def write(folder, name, content):
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return str(path)


def test_a_text_file_holds_an_id_a_line_and_comments(tmp_path):
    file = write(tmp_path, "ids.txt", "# mine\n\n toy/train/1 \ntoy/train/2\n")
    assert read_task_entries(file) == ["toy/train/1", "toy/train/2"]


def test_a_json_file_holds_ids_or_objects_with_an_item_id(tmp_path):
    entries = [{"item_id": "babyai_17", "conversations": [{"from": "human"}]}, "toy/train/1"]
    found = read_task_entries(write(tmp_path, "train.JSON", entries))
    assert found == entries
    assert [entry_id(entry) for entry in found] == ["babyai_17", "toy/train/1"]


def test_a_jsonl_file_holds_an_entry_a_line(tmp_path):
    file = write(tmp_path, "train.jsonl", '{"item_id": "babyai_1"}\n\n"babyai_2"\r\n')
    assert read_task_entries(file) == [{"item_id": "babyai_1"}, "babyai_2"]


def test_files_may_begin_with_a_byte_order_mark(tmp_path):
    assert read_task_entries(write(tmp_path, "a.json", '\ufeff["x"]')) == ["x"]
    assert read_task_entries(write(tmp_path, "a.txt", "\ufeffx\n")) == ["x"]


def test_a_file_of_trajectories_lists_a_task_once(tmp_path):
    entries = [{"item_id": "babyai_1", "n": n} for n in range(3)] + [{"item_id": "babyai_2"}]
    found = read_task_entries(write(tmp_path, "traj.json", entries))
    assert found == [{"item_id": "babyai_1", "n": 0}, {"item_id": "babyai_2"}]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "# nothing\n", "a.txt' holds no task id"),
        ("a.json", "[]", "a.json' holds no task id"),
        ("a.json", '[\n "x",\n oops]', "a.json' is broken: Expecting value at line 3 column 2"),
        ("a.json", '["x"', "a.json' is broken: .* at line 1 column 5"),
        ("a.jsonl", '"x"\n"y\n', "a.jsonl' is broken: Unterminated string .* at line 2 column 1"),
        ("a.json", "[" * 100_000, "a.json' is broken: "),
        (
            "a.json",
            '{"train": ["x"]}',
            r"a.json' must be a list of ids .* got \{'train': \['x'\]\}",
        ),
        ("a.json", '["x", {"id": "y"}]', "a.json' must be .* entry 1 is {'id': 'y'}"),
        ("a.json", '["x", {"item_id": 5}]', "entry 1 is {'item_id': 5}"),
        ("a.json", "[17]", "entry 0 is 17"),
    ],
)
def test_what_is_no_list_of_ids_is_refused(tmp_path, name, content, message):
    with pytest.raises(InvalidTask, match=message):
        read_task_entries(write(tmp_path, name, content))


def test_what_cannot_be_read_is_refused(tmp_path):
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    for name in ("missing.txt", "binary.json", "", "nul\0"):
        with pytest.raises(InvalidTask, match="cannot read task ids from the file"):
            read_task_entries(f"{tmp_path}/{name}")


def test_lists_of_the_caller_hold_entries_only():
    assert check_entries("tasks", ("a", {"item_id": "b"})) == ["a", {"item_id": "b"}]
    with pytest.raises(TypeError, match=r"tasks must be a list of ids .*, got 'a'"):
        check_entries("tasks", "a")
    with pytest.raises(TypeError, match=r"tasks must be a list of ids .*, but entry 1 is None"):
        check_entries("tasks", ["a", None])
