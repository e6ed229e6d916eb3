"""Two evaluations of the same tasks."""

import json

import pytest
from toys import make_task

from agentgym_envs.errors import InvalidEvaluation
from agentgym_envs.evaluation import EvalPlan, compare, paired_interval, read_result, summarize


@pytest.fixture
def make_result(make_episode):
    """The result of a policy that solves some tasks of 0..number - 1, or of `tasks`."""

    def make(solved, number=20, *, tasks=None, name="x", horizon=8, k=1, seed=0, turns=3):
        numbers = list(range(number)) if tasks is None else tasks
        episodes = [
            make_episode(n, turns, n in solved, horizon=horizon, member=m)
            for n in numbers
            for m in range(k)
        ]
        chosen = tuple(make_task(n) for n in numbers)
        plan = EvalPlan("Toy-v0", {}, chosen, horizon, k, seed).fingerprint({"name": name})
        found = {"plan": plan} | summarize(chosen, episodes, horizon=horizon, k=k).to_json()
        return json.loads(json.dumps(found))

    return make


def test_a_difference_is_paired_and_told_in_words(make_result):
    first, second = make_result(range(15), name="rl"), make_result(range(5), name="sft", seed=1)
    found = compare(first, second, names=("rl", "sft"))
    expected = paired_interval([n < 15 for n in range(20)], [n < 5 for n in range(20)])
    assert found["success"] == expected.to_json()
    assert found["success"]["value"] == 0.5
    assert found["verdict"]["success"] == (
        f"rl has higher success than sft (+0.500, 95 % interval {expected.low:+.3f} to "
        f"{expected.high:+.3f}, 20 tasks)"
    )
    assert found["tasks"] == {"rl": 10, "sft": 0, "equal": 10}
    assert found["differs"] == {"policy.name": ['"rl"', '"sft"'], "seed": ["0", "1"]}
    turned = compare(second, first, names=("sft", "rl"))["verdict"]["success"]
    assert turned.startswith("rl has higher success than sft (-0.500")


def test_no_difference_shown_is_said(make_result):
    found = compare(make_result(range(10)), make_result(range(1, 10)))
    assert found["verdict"]["success"].startswith("no difference in success shown (+0.050, ")
    same = compare(make_result(range(10)), make_result(range(10)))
    assert same["verdict"]["score"].startswith("no difference in score shown (+0.000, ")
    assert same["success"]["interval_95"][0] < 0 < same["success"]["interval_95"][1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"horizon": 9}, "horizon is 8 in A and 9 in B"),
        ({"k": 2}, "k is 1 in A and 2 in B"),
        (
            {"number": 19},
            r"tasks.number is 20 in A and 19 in B; their tasks are not .* with --common",
        ),
        ({"tasks": range(1, 21)}, "compared: their tasks are not the same; .* with --common"),
    ],
)
def test_what_cannot_be_compared_is_refused(make_result, change, told):
    with pytest.raises(InvalidEvaluation, match=told):
        compare(make_result(range(5)), make_result(range(5), **change))


def test_tasks_in_common_are_compared_on_request(make_result):
    first, second = make_result(range(20)), make_result([], tasks=range(12, 30))
    found = compare(first, second, only_common=True)
    assert found["success"]["tasks"] == 8
    assert found["success"]["value"] == 1.0
    with pytest.raises(InvalidEvaluation, match=r"horizon is 8 in A and 9 in B$"):
        compare(first, make_result([], horizon=9), only_common=True)
    with pytest.raises(InvalidEvaluation, match="no task in common"):
        compare(first, make_result([], tasks=[40]), only_common=True)


def test_the_order_of_tasks_does_not_matter(make_result):
    first, second = make_result(range(7)), make_result(range(5), tasks=list(range(20))[::-1])
    assert compare(first, second)["success"]["value"] == pytest.approx(0.1)


def test_results_are_read_from_a_folder_or_a_file(make_result, tmp_path):
    file = tmp_path / "result.json"
    file.write_text(json.dumps(make_result(range(3))))
    assert read_result(tmp_path) == read_result(file) == make_result(range(3))
    file.write_text('{"success_after": 1}')
    with pytest.raises(InvalidEvaluation, match=r"result\.json is no result of an evaluation"):
        read_result(tmp_path)
    file.write_text("[1")
    with pytest.raises(InvalidEvaluation, match=r"cannot read .*result\.json"):
        read_result(tmp_path)
    with pytest.raises(InvalidEvaluation, match="has a result after it is resumed"):
        read_result(tmp_path / "nowhere")


def test_a_result_with_strange_tasks_is_told_of(make_result):
    strange = make_result(range(3))
    strange["tasks"] = [{"id": "toy/train/1"}]
    with pytest.raises(InvalidEvaluation, match="in its tasks"):
        compare(make_result(range(3)), strange)
