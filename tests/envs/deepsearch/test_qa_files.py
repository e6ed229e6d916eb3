"""Questions from files in the shapes of others, the public sets, and AgentGym's numbers."""

import gzip
import json
import os
import sys

import pytest

from agentgym_envs.agentgym_ids import AgentGymItem
from agentgym_envs.deepsearch.public_sets import NUM_ITEMS, PUBLIC_SETS, place_of, task_of_item
from agentgym_envs.deepsearch.qa_files import questions_of_files
from agentgym_envs.errors import InvalidTask, UnknownName, Unsupported

FLASHRAG = {
    "id": "dev_7",
    "question": "who wrote  the song",
    "golden_answers": ["A. Writer", "Writer"],
    "metadata": {},
}
SEARCH_R1 = {
    "id": "test_3",
    "question": "who sang it?",
    "golden_answers": ["Singer"],
    "data_source": "hotpotqa",
    "prompt": [{"role": "user", "content": "Rules. Question: who sang it?\n"}],
    "ability": "fact-reasoning",
    "reward_model": {"style": "rule", "ground_truth": {"target": ["Singer"]}},
    "extra_info": {"split": "test", "index": 3},
}


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".json":
        path.write_text(json.dumps(rows), encoding="utf-8")
    else:
        path.write_text(text, encoding="utf-8")
    return str(path)


def plain(count):
    return [{"question": f"q{number}", "golden_answers": [f"a{number}"]} for number in range(count)]


# -------------------------------------------------------------------------------------- shapes


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "json"])
def test_flashrags_rows_have_their_set_and_split_from_the_path(tmp_path, ending):
    path = write(tmp_path / "musique" / f"dev.{ending}", [FLASHRAG, FLASHRAG])
    tasks = questions_of_files(path)
    first, second = tasks.of_split("dev")
    assert (first.id, second.id) == ("deepsearch/dev/musique/0", "deepsearch/dev/musique/1")
    assert (first.goal, first.category, first.split) == ("who wrote the song", "musique", "dev")
    assert first.payload["answers"] == ["A. Writer", "Writer"]
    assert (first.payload["hops"], first.horizon, first.difficulty) == (3, 10, None)


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"golden_answers": None},
        {"question": None},
        {"golden_answers": None, "question": None},
    ],
    ids=str,
)
def test_search_r1s_rows_say_their_set_and_split_themselves(tmp_path, change):
    row = {key: value for key, value in (SEARCH_R1 | change).items() if value is not None}
    tasks = questions_of_files(write(tmp_path / "anything.jsonl", [row, row]))
    first, second = tasks.of_split("test")
    assert (first.id, second.id) == ("deepsearch/test/hotpotqa/0", "deepsearch/test/hotpotqa/1")
    assert first.goal == "who sang it?"
    assert first.payload["answers"] == ["Singer"]


def test_sets_and_splits_of_one_file_are_numbered_each_for_itself(tmp_path):
    rows = [
        SEARCH_R1 | {"data_source": source, "extra_info": {"split": split}}
        for source, split in (("nq", "test"), ("nq", "train"), ("popqa", "test"), ("nq", "test"))
    ]
    tasks = questions_of_files(write(tmp_path / "x.jsonl", rows))
    assert tasks.of_split("test").ids == (
        *("deepsearch/test/nq/0", "deepsearch/test/popqa/0", "deepsearch/test/nq/1"),
    )
    assert tasks.of_split("train").ids == ("deepsearch/train/nq/0",)
    assert tasks.of_split("test", ["popqa"]).ids == ("deepsearch/test/popqa/0",)
    assert tasks.sets == ("nq", "popqa")
    assert (tasks.count("test", "nq"), tasks.count("dev", "nq")) == (2, 0)


def test_several_files_and_splits_by_name(tmp_path):
    one = write(tmp_path / "nq" / "a.jsonl", plain(2))
    two = write(tmp_path / "nq" / "b.jsonl", plain(1))
    tasks = questions_of_files({"train": [one], "test": two})
    assert (tasks.count("train", "nq"), tasks.count("test", "nq")) == (2, 1)
    assert len(questions_of_files({"test": [one, two]}).of_split("test")) == 3
    named = write(tmp_path / "nq" / "train.jsonl", plain(2))
    assert questions_of_files([named]).count("train", "nq") == 2


def test_our_own_records_keep_their_ids_and_chains(small):
    tasks = questions_of_files(small["questions"])
    task = tasks.of_id("deepsearch/train/two-hops/0")
    assert task.payload["chain"][0]["query"] == "capital of Avelonia"
    assert (task.difficulty, task.horizon) == (3, 8)


def test_parquet_is_read_as_json_is(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pytest.importorskip("pyarrow").Table.from_pylist([SEARCH_R1, SEARCH_R1])
    parquet.write_table(table, tmp_path / "test.parquet")
    lines = write(tmp_path / "test.jsonl", [SEARCH_R1, SEARCH_R1])
    found = questions_of_files(str(tmp_path / "test.parquet"))
    assert list(found.of_split("test")) == list(questions_of_files(lines).of_split("test"))
    (tmp_path / "no.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidTask, match="is no Parquet file"):
        questions_of_files(str(tmp_path / "no.parquet"))


def test_parquet_without_its_package_names_the_package(tmp_path, monkeypatch):
    (tmp_path / "test.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(Unsupported, match="needs pyarrow: pip install"):
        questions_of_files(str(tmp_path / "test.parquet"))


def test_a_file_is_read_again_if_it_has_changed(tmp_path):
    path = write(tmp_path / "nq" / "test.jsonl", plain(1))
    first = questions_of_files(path)
    assert questions_of_files(path) is first
    write(tmp_path / "nq" / "test.jsonl", plain(2))
    os.utime(path, ns=(1, 1))
    assert len(questions_of_files(path)) == 2


# -------------------------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"golden_answers": ["x"]}, "line 2: the row has no question"),
        ({"question": "  ", "golden_answers": ["x"]}, "line 2: the row has no question"),
        ({"question": 3, "golden_answers": ["x"]}, "line 2: the row has no question"),
        ({"question": "x"}, "line 2: golden_answers must be a list of texts, got None"),
        ({"question": "x", "golden_answers": []}, r"must be a list of texts, got \[\]"),
        ({"question": "x", "golden_answers": [3]}, r"must be a list of texts, got \[3\]"),
        ({"question": "x", "golden_answers": [""]}, "must be a list of texts"),
        ([], "line 2: a row must be an object"),
        ({"question": "x", "golden_answers": ["x"], "data_source": "a/b"}, "cannot name a set"),
        (
            {"question": "x", "golden_answers": ["x"], "extra_info": {"split": "part"}},
            "'part' is no split",
        ),
        ({"prompt": "x", "golden_answers": ["x"]}, "line 2"),
        ({"question": "x", "answers": ["x"]}, "record 2 is no question: id must be a text"),
        ({"question": "x", "reward_model": 3}, "line 2"),
    ],
    ids=str,
)
def test_a_broken_row_is_named_and_nothing_is_loaded(tmp_path, row, message):
    path = write(tmp_path / "nq" / "test.jsonl", [FLASHRAG, row])
    with pytest.raises(InvalidTask, match=message):
        questions_of_files(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("test.jsonl", b'{"question": "x", "golden_answers": ["x"]}\nnothing\n', "line 2 is no"),
        ("test.jsonl", b"\xff\xfe", "line 1 cannot be read"),
        ("test.jsonl.gz", b"nothing", "line 1 cannot be read"),
        ("test.json", b"nothing", "is no JSON"),
        ("test.json", b'{"question": "x"}', "must hold a list"),
        ("some.jsonl", b'{"question": "x", "golden_answers": ["x"]}', "'some' is no split"),
    ],
)
def test_broken_files_are_refused(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidTask, match=message):
        questions_of_files(str(tmp_path / name))


def test_what_names_no_files_is_refused(tmp_path):
    path = write(tmp_path / "test.jsonl", plain(1))
    with pytest.raises(InvalidTask, match="names no file"):
        questions_of_files([])
    with pytest.raises(UnknownName, match="unknown split 'tset'; did you mean 'test'"):
        questions_of_files({"tset": path})
    with pytest.raises(TypeError, match="must be a path, a list of paths, or an object"):
        questions_of_files(3)
    with pytest.raises(InvalidTask, match="cannot be read"):
        questions_of_files(str(tmp_path / "nowhere.jsonl"))


def test_two_records_with_one_id_are_refused(tmp_path, small):
    twice = [small["questions"], small["questions"]]
    with pytest.raises(InvalidTask, match="two questions have the id"):
        questions_of_files(twice)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"split": "any"}, "split must be one of train, dev, test, got 'any'"),
        ({"id": "x"}, "id must begin with 'deepsearch/test/s/'"),
        ({"hops": 0}, "hops must be a whole number of at least 1, got 0"),
        ({"answers": []}, "answers must hold at least one text"),
        ({"answers": "x"}, "answers must be a list of texts, got 'x'"),
        ({"gold_passages": 3}, "gold_passages must be a list of texts, got 3"),
        ({"chain": [{"query": "x"}]}, "chain must be a list of texts"),
        ({"chain": [3]}, "a step of the chain must be an object"),
        ({"set": ""}, "set must be a text"),
    ],
    ids=str,
)
def test_broken_records_are_told_of(tmp_path, change, message):
    record = {
        "id": "deepsearch/test/s/0",
        "set": "s",
        "split": "test",
        "question": "x",
        "answers": ["x"],
        "hops": 1,
    }
    assert len(questions_of_files(write(tmp_path / "good.jsonl", [record]))) == 1
    with pytest.raises(InvalidTask, match=message):
        questions_of_files(write(tmp_path / "bad.jsonl", [record | change]))


# ------------------------------------------------------------------------------ AgentGym's items


@pytest.mark.parametrize(
    ("first", "last", "name", "is_test"),
    [
        (0, 3_609, "nq", True),
        (3_610, 14_922, "triviaqa", True),
        (14_923, 29_189, "popqa", True),
        (29_190, 36_594, "hotpotqa", True),
        (36_595, 49_170, "2wikimultihopqa", True),
        (49_171, 51_587, "musique", True),
        (51_588, 51_712, "bamboogle", True),
        (51_713, 130_880, "nq", False),
        (130_881, 221_327, "hotpotqa", False),
    ],
)
def test_agentgyms_ranges_of_numbers(first, last, name, is_test):
    for number, row in ((first, 0), (last, last - first)):
        place = place_of(number)
        assert (place.of.name, place.is_test, place.row) == (name, is_test, row)
        assert place.size == last - first + 1


@pytest.mark.parametrize("number", [-1, 221_328, 10**18])
def test_other_numbers_are_none(number):
    with pytest.raises(InvalidTask, match=f"from 0 to 221327, not {number}"):
        place_of(number)


def test_the_sizes_of_the_public_sets():
    assert sum(public.num_test for public in PUBLIC_SETS) == 51_713
    assert sum(public.num_train for public in PUBLIC_SETS) == 169_615
    assert NUM_ITEMS == 221_328


@pytest.mark.parametrize("split", ["test", "dev"])
def test_an_item_is_the_question_of_its_number_where_the_set_is_there_in_full(
    make, tmp_path, split
):
    path = write(tmp_path / "bamboogle" / f"{split}.jsonl", plain(125))
    env = make(questions=path)
    _, info = env.reset(options={"task": "searchqa_51590"})
    assert info["task_id"] == f"deepsearch/{split}/bamboogle/2"
    assert env.task.goal == "q2"
    items = make(questions=path, tasks=["searchqa_51588", "searchqa_51712"]).tasks
    assert [task.goal for task in items] == ["q0", "q124"]


def test_an_item_of_a_set_that_is_not_there_in_full_is_refused(make, tmp_path):
    tasks = questions_of_files(write(tmp_path / "bamboogle" / "test.jsonl", plain(124)))
    with pytest.raises(InvalidTask, match=r"question 2 of the 125 for tests of Bamboogle .* 124 "):
        task_of_item(tasks, AgentGymItem("searchqa", 51_590))
    with pytest.raises(InvalidTask, match=r"'searchqa_0' is question 0 of the 3,610"):
        make().reset(options={"task": "searchqa_0"})
    with pytest.raises(InvalidTask, match="item of AgentGym's BabyAI"):
        make().reset(options={"task": "babyai_0"})
