"""Who plays, and what happens when something breaks."""

import threading
import time

import gymnasium
import pytest
from chat_server import ChatServer
from counting import CountingEnv, FaultyEnv

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import (
    EnvFault,
    InvalidEvaluation,
    NoPlan,
    PolicyFault,
    PolicyStopped,
    UnknownName,
)
from agentgym_envs.evaluation import (
    EvalPlan,
    Player,
    choose_tasks,
    oracle_player,
    play,
    random_player,
    text_player,
)
from agentgym_envs.policies import ScriptedPolicy, run_episode


def plan_of(env_id="Test/Counting-v0", **fields):
    return EvalPlan(env_id, {}, choose_tasks(env_id, {}, "train"), **({"horizon": 10} | fields))


def register(monkeypatch, env_id, entry_point):
    spec = gymnasium.envs.registration.EnvSpec(
        env_id, entry_point=entry_point, order_enforce=False, disable_env_checker=True
    )
    monkeypatch.setitem(gymnasium.registry, env_id, spec)


def breaking_at(number):
    """Breaks the world of one task and plays all others as the oracle."""

    def make(env, job):
        breaks = job.task.payload["number"] == number
        return ScriptedPolicy(["break"]) if breaks else env.oracle()

    return Player({"name": "breaking"}, make)


def played(plan, player, **options):
    episodes = []
    play(plan, player, list(plan.jobs()), episodes.append, **options)
    return sorted(
        episodes, key=lambda episode: (int(episode.task.id.split("/")[2]), episode.member)
    )


def test_the_oracle_solves_every_task_as_often_as_asked():
    episodes = played(plan_of(k=2), oracle_player())
    assert [(episode.task.id, episode.member) for episode in episodes] == [
        (f"counting/train/{n}", member) for n in (3, 6, 9, 12) for member in (0, 1)
    ]
    assert all(episode.success and episode.horizon == 10 for episode in episodes)


def test_random_play_depends_on_seed_task_and_try_alone():
    once = played(plan_of(k=3, horizon=6), random_player(1))
    assert played(plan_of(k=3, horizon=6), random_player(1), threads=3) == once
    replies = [[turn.reply for turn in episode.turns] for episode in once]
    assert replies[0] != replies[1]
    assert played(plan_of(k=1, horizon=6), random_player(1)) == once[::3]
    assert played(plan_of(k=3, horizon=6), random_player(2)) != once


def test_tries_of_a_task_differ_in_the_randomness_of_the_world():
    player = Player({"name": "roller"}, lambda env, job: ScriptedPolicy(["roll"]))
    rolls = [episode.turns[0].observation for episode in played(plan_of(k=8), player)]
    assert len(set(rolls[:8])) > 1


def test_players_are_found_by_name():
    assert text_player("oracle", 0).description == {"name": "oracle"}
    endpoint = {"url": "http://h/v1", "model": "m", "temperature": 0.5, "max_tokens": 9}
    assert text_player("endpoint", 0, **endpoint, request={"top_p": 1}).description == {
        "name": "m",
        "url": "http://h/v1/chat/completions",
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 9,
        "request": {"top_p": 1},
    }
    with pytest.raises(UnknownName, match="did you mean 'oracle'"):
        text_player("orcale", 0)


def breaks_first(fault, times):
    """Raises `fault` at the first so many second turns of each task, then plays as the oracle."""
    counts = {}
    lock = threading.Lock()

    class Breaking:
        def __init__(self, oracle, task_id):
            self.oracle, self.task_id, self.turn = oracle, task_id, 0

        def start(self, instructions):
            pass

        def reply(self, observation, info):
            self.turn += 1
            with lock:
                if self.turn == 2 and counts.setdefault(self.task_id, 0) < times:
                    counts[self.task_id] += 1
                    raise fault
            return self.oracle.reply(observation, info)

    return Player({"name": "x"}, lambda env, job: Breaking(env.oracle(), job.task.id))


@pytest.mark.parametrize("fault", [PolicyFault("gone"), EnvFault("gone")])
def test_what_breaks_once_is_played_again_from_the_start(fault):
    episodes = played(plan_of(), breaks_first(fault, 1))
    assert all(episode.success for episode in episodes)
    assert episodes == played(plan_of(), oracle_player())


def test_what_breaks_twice_is_a_fault_with_what_was_played():
    episodes = played(plan_of(), breaks_first(PolicyFault("gone \ud800"), 2), max_faults=1.0)
    assert {episode.end_reason for episode in episodes} == {EndReason.FAULT}
    assert [len(episode.turns) for episode in episodes] == [1] * 4
    assert episodes[0].fault == "gone \ufffd"
    assert not any(episode.success for episode in episodes)


def test_what_cannot_work_is_not_tried_again():
    fault = PolicyFault("refused", retryable=False)
    episodes = played(plan_of(), breaks_first(fault, 1), max_faults=1.0)
    assert {episode.end_reason for episode in episodes} == {EndReason.FAULT}


def test_too_many_faults_stop_the_evaluation_and_what_ended_is_handed_on():
    plan, episodes = plan_of(k=3), []
    player = breaks_first(PolicyFault("server is down"), 10**9)
    with pytest.raises(EnvFault, match=r"4 of 12 episodes broke, .* 0.25 .* last: server is down"):
        play(plan, player, list(plan.jobs()), episodes.append, max_faults=0.25)
    assert len(episodes) == 4


def test_a_world_that_breaks_is_made_anew(monkeypatch):
    FaultyEnv.broken_resets = 1
    monkeypatch.setattr(FaultyEnv, "built", [])
    episodes = played(plan_of("Test/Faulty-v0"), oracle_player())
    assert all(episode.success for episode in episodes)
    assert FaultyEnv.broken_resets == 0


@pytest.mark.parametrize("error", [EnvFault("no JVM"), OSError("no space left")])
def test_a_world_that_cannot_be_made_is_a_fault_and_tried_again(monkeypatch, error):
    calls = []

    def make(**arguments):
        calls.append(arguments)
        if len(calls) == 2:  # the first one was asked for its tasks
            raise error
        return CountingEnv(**arguments)

    register(monkeypatch, "Test/Late-v0", make)
    episodes = played(plan_of("Test/Late-v0"), oracle_player(), max_faults=0.0)
    assert all(episode.success for episode in episodes)


def test_a_broken_world_that_cannot_be_closed_costs_no_other_episode(monkeypatch, caplog):
    class Stuck(FaultyEnv):
        def close(self):
            if "break" in self.calls:
                raise RuntimeError("it does not answer")

    register(monkeypatch, "Test/Stuck-v0", Stuck)
    episodes = played(plan_of("Test/Stuck-v0"), breaking_at(3), max_faults=0.5)
    assert [episode.success for episode in episodes] == [False, True, True, True]
    assert "could not be closed" in caplog.text


def test_the_share_that_may_break_is_one_of_all_episodes_and_not_of_those_that_are_left():
    plan = plan_of("Test/Faulty-v0", k=3)
    left = [job for job in plan.jobs() if (job.task.payload["number"], job.member) == (3, 1)]
    episodes = []
    play(plan, breaking_at(3), left, episodes.append, max_faults=0.1)  # 1 of 12; 2 are allowed
    assert [episode.end_reason for episode in episodes] == [EndReason.FAULT]
    with pytest.raises(EnvFault, match=r"3 of 12 episodes broke, more than the share of 0\.1"):
        play(plan, breaking_at(3), list(plan.jobs()), episodes.append, max_faults=0.1)


def test_an_oracle_that_finds_no_way_has_not_solved_the_task():
    class Lost(ScriptedPolicy):
        def reply(self, observation, info):
            if info["turn"] == 1:
                raise NoPlan("no way")
            return super().reply(observation, info)

    episodes = played(plan_of(), Player({"name": "x"}, lambda env, job: Lost(["add 1"])))
    assert {episode.end_reason for episode in episodes} == {EndReason.STOPPED}
    assert [len(episode.turns) for episode in episodes] == [1] * 4


def test_a_policy_may_end_its_episode():
    class Full(ScriptedPolicy):
        def reply(self, observation, info):
            raise PolicyStopped("no room", reason="context")

    episode = run_episode(CountingEnv(), Full(["x"]), task=0)
    assert (episode.end_reason, episode.turns) == (EndReason.CONTEXT, [])


def test_a_bug_costs_its_episode_and_no_other(caplog):
    def make(env, job):
        return ScriptedPolicy(["crash"]) if job.task.payload["number"] == 3 else env.oracle()

    episodes = played(plan_of("Test/Faulty-v0"), Player({"name": "x"}, make), max_faults=0.5)
    assert [episode.success for episode in episodes] == [False, True, True, True]
    assert episodes[0].fault == "ZeroDivisionError('a bug')"
    assert caplog.text.count("task counting/train/3, try 0 broke") == 2  # it was tried again


def test_a_mistake_in_the_call_stops_all_threads_soon():
    class Slow(ScriptedPolicy):
        def reply(self, observation, info):
            time.sleep(0.02)
            return super().reply(observation, info)

    def make(env, job):
        if job.task.payload["number"] == 3:
            raise InvalidEvaluation("no such model")
        return Slow(["roll"])

    plan = plan_of(horizon=1000)
    began = time.monotonic()
    with pytest.raises(InvalidEvaluation, match="no such model"):
        play(plan, Player({"name": "x"}, make), list(plan.jobs()), [].append, threads=4)
    assert time.monotonic() - began < 15  # not the 20 seconds of a thousand turns


def test_a_model_behind_an_endpoint_is_evaluated_in_threads():
    def solve(body):
        seen = body["messages"][-1]["content"]
        return f"add {seen.split()[4].rstrip(',')}" if seen.startswith("Make") else "done"

    with ChatServer(solve, [500, 429]).running() as server:
        player = text_player("endpoint", 0, url=server.url, model="tiny")
        episodes = played(plan_of(k=2), player, threads=3)
    assert [episode.success for episode in episodes] == [True] * 6 + [False] * 2  # "add 12" fails
    seeds = {body["seed"] for body in server.requests}
    assert len(seeds) == 8


def test_wrapped_environments_are_played(monkeypatch):
    register(
        monkeypatch,
        "Test/Limited-v0",
        lambda **kwargs: gymnasium.wrappers.TimeLimit(CountingEnv(**kwargs), 1),
    )
    episodes = played(plan_of("Test/Limited-v0"), oracle_player())
    assert {episode.end_reason for episode in episodes} == {EndReason.HORIZON}
