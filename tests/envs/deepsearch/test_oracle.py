"""The oracle goes the way of the chain, and says so where there is none."""

import pytest

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.deepsearch.passages import Passage
from agentgym_envs.deepsearch.retrievers import fts5
from agentgym_envs.errors import NoPlan
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import SPLITS

TASK = "deepsearch/train/two-hops/0"


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_it_answers_every_question_in_as_many_turns_as_the_task_says(make, compat):
    for split in SPLITS:
        env = make(split=split, compat=compat)
        for task in env.tasks:
            episode = run_episode(env, task=task)
            assert episode.success, task.id
            assert len(episode.turns) == task.difficulty < task.horizon


@pytest.mark.parametrize("action_format", ACTION_FORMATS)
def test_it_plays_in_every_format(make, action_format):
    env = make(action_format=action_format, strict=True)
    episode = run_episode(env, task=TASK)
    assert episode.success
    assert all(turn.action_valid for turn in episode.turns)


def test_it_goes_on_from_where_somebody_else_has_been(make):
    env = make()
    env.reset(options={"task": TASK})
    env.step("<search>rivers</search>")
    env.step("hm")
    env.step("<search>capital of Avelonia</search>")
    oracle = env.oracle()
    assert oracle.reply("", {}) == "<search>Tirmouth history founded</search>"
    env.step(oracle.reply("", {}))
    assert oracle.reply("", {}) == "<answer>Queen Oda</answer>"


def test_it_does_not_answer_what_its_searches_do_not_find(make, tmp_path):
    fts5.build(tmp_path / "other.sqlite", [Passage("x", "Avelonia: Capital", "Not known.")])
    env = make(retriever={"name": "fts5", "path": str(tmp_path / "other.sqlite")})
    with pytest.raises(NoPlan, match=r"'capital of Avelonia' does not find .* 'Avelonia/capital'"):
        run_episode(env, task=TASK)


def test_it_knows_no_way_to_an_answer_without_a_chain(make, tmp_path):
    path = tmp_path / "test.jsonl"
    path.write_text('{"question": "Why?", "golden_answers": ["so"]}\n', encoding="utf-8")
    env = make(questions=str(path), split="test")
    env.reset()
    with pytest.raises(NoPlan, match="nobody knows the way to the answer of 'Why\\?'"):
        env.oracle().reply("", {})


def test_queries_and_answers_that_a_line_cannot_hold_are_no_endless_way(make):
    env = make()
    task = env.tasks[TASK]
    chain = [{"query": '"Avelonia" capital D.C.!', "passage_id": "Avelonia/capital", "answer": "x"}]
    payload = {"answers": ["Washington, D.C."], "chain": chain, "gold_passages": []}
    odd = type(task).from_json(task.to_json() | {"payload": payload})
    assert run_episode(env, task=odd).success
