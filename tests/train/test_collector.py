"""The collector: what the engine gets, what is recorded, and what happens when things break."""

import math

import numpy as np
import pytest
from counting import CountingEnv, FaultyEnv
from scripted_engine import ScriptedEngine, ScriptedReply

from agentgym_envs.episodes import EndReason
from agentgym_envs.seeds import stable_seed
from agentgym_envs.vector import TextVectorEnv
from agentgym_train.algorithms.rloo import RLOO
from agentgym_train.algorithms.settings import CreditConfig
from agentgym_train.batching import sample_from_episode
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.errors import ConfigError, ContextError, TooManyFaults
from agentgym_train.rollout.collector import (
    Collector,
    EpisodeContext,
    Job,
    SamplingConfig,
    group_jobs,
)

TEXTS = ["The counter shows 0.", "add 3", "done", "hang 5", "break", "Make the counter show 3"]


@pytest.fixture
def template():
    return ChatTemplate(train_tokenizer(TEXTS, 300))


@pytest.fixture
def make_collector(template):
    """A collector whose policy says what `say(turn)` gives."""
    made = []

    def make(
        say,
        *,
        env=CountingEnv,
        num_envs=2,
        workers="inline",
        max_tokens=12,
        told="command",
        **settings,
    ):
        turns = {}

        def script(request):
            turn = turns[request.stream] = turns.get(request.stream, -1) + 1
            reply = say(turn, request)
            if isinstance(reply, ScriptedReply):
                return reply
            return ScriptedReply(template.encode_reply(reply))

        engine = ScriptedEngine(
            script, stop_ids=template.stop_ids, max_context=settings.pop("max_context", 4096)
        )
        envs = TextVectorEnv(lambda: env(highest=12, action_format=told), num_envs, workers=workers)
        made.append(envs)
        return Collector(
            envs,
            engine,
            template,
            sampling=SamplingConfig(max_tokens=max_tokens, **settings),
            context=EpisodeContext("Test/Counting-v0", told, {"counting": "rules"}, {}),
            seed=7,
            show_instructions=False,
        )

    yield make
    for envs in made:
        envs.close()


@pytest.fixture
def tasks():
    return list(CountingEnv(highest=12).tasks)  # 3, 6, 9, 12


def solve(task):
    number = task.payload["number"]
    return ["add 9", f"add {number - 9}", "done"] if number > 9 else [f"add {number}", "done"]


def test_sampled_tokens_are_kept_and_context_is_the_rest(make_collector, tasks, template):
    collector = make_collector(lambda turn, _: solve(tasks[0])[turn])
    (episode,) = collector.collect([Job(tasks[0], 0, 5, 1)], purpose="test")
    assert episode.end_reason is EndReason.SUCCESS
    assert episode.success
    assert episode.return_ == 1.0
    assert [turn.reply for turn in episode.turns] == ["add 3", "done"]
    ids, mask = np.array(episode.token_ids), np.array(episode.sampled_mask)
    sampled = template.encode_reply("add 3") + template.encode_reply("done")
    assert ids[mask].tolist() == sampled
    opened = template.open("", episode.first_observation)
    answered = template.extend(episode.turns[0].observation, closed=True)
    assert ids[~mask].tolist() == opened + answered


def test_the_prompt_of_every_turn_is_the_recorded_prefix(make_collector, tasks):
    collector = make_collector(
        lambda turn, _: ["add 1", "add 1", "nonsense", "add 1", "done"][turn]
    )
    (episode,) = collector.collect([Job(tasks[0], 0, 10, 1)], purpose="test")
    recorded = []
    for request, turn in zip(collector.engine.requests, episode.turns, strict=True):
        recorded += turn.context_ids
        assert list(request.prompt_ids) == recorded
        recorded += turn.sampled_ids
    assert [turn.action_valid for turn in episode.turns] == [True, True, False, True, True]


def test_a_cut_reply_is_parsed_as_it_stands_and_its_turn_is_closed_unsampled(
    make_collector, tasks, template
):
    long_reply = ScriptedReply(template.encode_reply("add 3 and then some more words")[:-1])
    collector = make_collector(lambda turn, _: long_reply if turn == 0 else "done", max_tokens=4)
    (episode,) = collector.collect([Job(tasks[0], 0, 2, 1)], purpose="test")
    first = episode.turns[0]
    assert first.finish_reason == "length"
    assert len(first.sampled_ids) == 4
    assert template.stop_ids.isdisjoint(first.sampled_ids)
    closing = template.encode_reply("")[0]
    assert episode.turns[1].context_ids[0] == closing  # context, not sampled
    assert not episode.sampled_mask[len(first.context_ids) + 4]


def test_episodes_come_back_in_the_order_of_jobs_whoever_finishes_first(make_collector, tasks):
    def say(turn, request):
        # Streams of the first group take many polls a reply, later ones few.
        polls = 7 if request.stream % 3 == 1 else 1
        text = "done" if turn else "add 1"
        return ScriptedReply(collector.template.encode_reply(text), polls=polls)

    collector = make_collector(say, num_envs=3)
    jobs = list(group_jobs(tasks, group_size=3, horizon=4, seed=5))
    finished = []
    episodes = collector.collect(jobs, purpose="test", on_episode=finished.append)
    assert [(e.task.id, e.member, e.seed) for e in episodes] == [
        (job.task.id, job.member, job.seed) for job in jobs
    ]
    assert [id(e) for e in finished] != [id(e) for e in episodes]
    assert sorted(collector.engine.released) == sorted(
        {r.stream for r in collector.engine.requests}
    )


def test_random_numbers_are_keyed_by_task_member_and_turn_not_by_arrival(make_collector, tasks):
    def seeds(jobs, num_envs):
        collector = make_collector(lambda turn, _: "done" if turn else "add 1", num_envs=num_envs)
        collector.collect(jobs, purpose="test")
        return sorted(request.seed for request in collector.engine.requests)

    jobs = list(group_jobs(tasks, group_size=2, horizon=4, seed=5))
    expected = sorted(
        stable_seed(7, "test", task.id, member, turn)
        for task in tasks
        for member in range(2)
        for turn in range(2)
    )
    assert seeds(jobs, 1) == seeds(jobs, 4) == seeds(jobs[::-1], 3) == expected
    assert len(set(expected)) == len(expected)


def test_the_members_of_a_group_share_task_and_seed(tasks):
    jobs = list(group_jobs(tasks[:2], group_size=3, horizon=4, seed=5))
    assert [job.member for job in jobs] == [0, 1, 2, 0, 1, 2]
    assert len({(job.task.id, job.seed) for job in jobs[:3]}) == 1
    assert jobs[0].seed != jobs[3].seed


def test_a_broken_episode_is_played_again_once_and_then_succeeds(make_collector, tasks):
    FaultyEnv.broken_resets = 1
    collector = make_collector(lambda turn, _: solve(tasks[0])[turn], env=FaultyEnv)
    (episode,) = collector.collect([Job(tasks[0], 0, 5, 1)], purpose="test")
    assert episode.end_reason is EndReason.SUCCESS
    assert episode.fault == ""
    assert episode.seed == 1


def test_an_episode_that_breaks_twice_ends_as_a_fault_without_reward(make_collector, tasks):
    collector = make_collector(
        lambda turn, _: "break" if turn else "add 3", env=FaultyEnv, max_faults=1.0
    )
    episodes = collector.collect([Job(tasks[0], m, 5, 1) for m in range(3)], purpose="test")
    assert [episode.end_reason for episode in episodes] == [EndReason.FAULT] * 3
    assert all("fell off the wall" in episode.fault for episode in episodes)
    assert all(not episode.success and episode.turns[-1].reward == 0 for episode in episodes)
    assert [turn.reply for turn in episodes[0].turns] == ["add 3", "break"]


def test_more_faults_than_allowed_stop_the_run_with_a_clear_message(make_collector, tasks):
    def say(turn, request):
        return "break" if request.stream in broken else solve(tasks[0])[turn]

    jobs = [Job(tasks[0], member, 5, 1) for member in range(8)]
    collector = make_collector(say, env=FaultyEnv, num_envs=1, max_faults=0.2)
    broken = {2, 3, 5, 6}  # the second and the fourth job, each at both tries
    episodes = collector.collect(jobs, purpose="test")  # 2 of 8: 0.2 of 8 is 1.6, rounded up
    ends = [episode.end_reason for episode in episodes]
    assert [index for index, end in enumerate(ends) if end is EndReason.FAULT] == [1, 3]
    broken = set(range(100))
    message = r"3 of 8 episodes broke twice, .* the 2 that .* = 0.2 allows; .* fell off the wall"
    with pytest.raises(TooManyFaults, match=message):
        collector.collect(jobs, purpose="test")


def test_without_a_budget_the_first_fault_stops_the_run(make_collector, tasks):
    collector = make_collector(lambda turn, _: "break", env=FaultyEnv, max_faults=0.0)
    with pytest.raises(TooManyFaults, match=r"of 4 episodes broke twice, more than the 0 that"):
        collector.collect([Job(tasks[0], m, 5, 1) for m in range(4)], purpose="test")


@pytest.mark.parametrize(("on_fault", "left"), [("drop", []), ("mask", [0, 1, 3])])
def test_a_member_that_broke_takes_its_group_along_or_leaves_it(
    make_collector, tasks, on_fault, left
):
    def say(turn, request):
        if request.stream in (3, 4):  # the third member, at both tries
            return "break"
        return (solve(tasks[0]) if request.stream == 1 else ["add 1", "done"])[turn]

    collector = make_collector(say, env=FaultyEnv, num_envs=1, max_faults=0.5)
    group = collector.collect(
        list(group_jobs(tasks[:1], group_size=4, horizon=5, seed=0)), purpose="test"
    )
    assert [e.end_reason for e in group].count(EndReason.FAULT) == 1
    algorithm = RLOO(credit=CreditConfig(on_fault=on_fault))
    samples = algorithm.assign(algorithm.select([group], 0))
    assert [sample.origin[-1] for sample in samples] == list(map(str, left))
    # The baseline is that of the three which were played: 1, 0, 0.
    assert [float(sample.advantages[0]) for sample in samples] == [1.0, -0.5, -0.5][: len(left)]


def test_the_temperature_of_every_reply_is_recorded(make_collector, tasks):
    collector = make_collector(lambda turn, _: solve(tasks[0])[turn], temperature=0.7)
    jobs = [Job(tasks[0], 0, 5, 1)]
    (sampled,) = collector.collect(jobs, purpose="test")
    (greedy,) = collector.collect(jobs, purpose="test", temperature=0.0)
    assert [turn.temperature for turn in sampled.turns] == [0.7, 0.7]
    assert [turn.temperature for turn in greedy.turns] == [0.0, 0.0]
    assert sample_from_episode(sampled).temperature == 0.7
    assert sample_from_episode(greedy).old_logprobs is None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"top_p": 0.9}, "sampling.top_p = 0.9 would draw from another .*; set it to 1"),
        ({"temperature": 0.0}, "sampling.temperature must be above 0, got 0.0"),
        ({"temperature": math.nan}, "sampling.temperature must be above 0, got nan"),
        ({"max_tokens": 0}, "sampling.max_tokens.* 0"),
        ({"max_faults": 1.5}, "sampling.max_faults is a share, 0..1; got 1.5"),
    ],
)
def test_sampling_that_cannot_be_trained_on_is_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        SamplingConfig(**settings)


def test_a_first_prompt_that_does_not_fit_is_refused_and_a_later_one_ends_the_episode(
    make_collector, tasks
):
    collector = make_collector(lambda turn, _: "add 1", max_context=20)
    with pytest.raises(ContextError, match=r"first prompt of task .* context of 20; raise"):
        collector.collect([Job(tasks[0], 0, 5, 1)], purpose="test")
    collector = make_collector(lambda turn, _: "add 1", max_context=80)
    (episode,) = collector.collect([Job(tasks[3], 0, 10, 1)], purpose="test")
    assert episode.end_reason is EndReason.CONTEXT
    assert 1 <= len(episode.turns) < 10
    assert len(episode.token_ids) <= 80


def test_an_episode_that_is_cut_off_keeps_what_would_be_the_next_prompt(
    make_collector, tasks, template
):
    collector = make_collector(lambda turn, _: "add 1")
    (episode,) = collector.collect([Job(tasks[3], 0, 2, 1)], purpose="test")
    assert episode.end_reason is EndReason.HORIZON
    assert episode.tail_ids == template.extend(episode.turns[-1].observation, closed=True)
    collector = make_collector(lambda turn, _: "add 1", max_context=80)
    (episode,) = collector.collect([Job(tasks[3], 0, 10, 1)], purpose="test")
    assert episode.end_reason is EndReason.CONTEXT
    whole = template.extend(episode.turns[-1].observation, closed=True)
    room = 80 - len(episode.token_ids)
    assert len(whole) > room - collector.sampling.max_tokens
    assert episode.tail_ids == whole[:room]


def test_an_episode_that_ended_in_the_world_has_no_next_prompt(make_collector, tasks):
    collector = make_collector(lambda turn, _: solve(tasks[0])[turn])
    (episode,) = collector.collect([Job(tasks[0], 0, 5, 1)], purpose="test")
    assert episode.tail_ids is None


def test_the_state_in_which_a_reply_was_given_is_recorded_when_asked_for(make_collector, tasks):
    def keyed(**arguments):
        return CountingEnv(**arguments, info_keys=("state_key",))

    replies = ["add 1", "nonsense", "add 1", "add 1"]
    collector = make_collector(lambda turn, _: replies[turn], env=keyed)
    (episode,) = collector.collect([Job(tasks[3], 0, 4, 1)], purpose="test")
    first, second, third, fourth = (turn.state_key for turn in episode.turns)
    assert second == third  # nonsense changed nothing
    assert len({first, second, fourth}) == 3
    fresh = keyed(highest=12)
    fresh.reset(seed=1, options={"task": tasks[3]})
    assert first == fresh.state_key()
    plain = make_collector(lambda turn, _: "add 1")
    (episode,) = plain.collect([Job(tasks[3], 0, 2, 1)], purpose="test")
    assert [turn.state_key for turn in episode.turns] == [None, None]


def test_the_tool_call_that_an_observation_answers_is_recorded(make_collector, tasks):
    env = CountingEnv(highest=12, action_format="tools")
    replies = ["no call", *map(env.render_command, solve(tasks[0]))]
    collector = make_collector(lambda turn, _: replies[turn], told="tools", max_tokens=400)
    (episode,) = collector.collect([Job(tasks[0], 0, 5, 1)], purpose="test")
    assert episode.success
    assert [turn.role for turn in episode.turns] == [None, "tool", "tool"]
    assert [turn.call_id for turn in episode.turns] == [None, "call_1", "call_1"]


def test_after_an_interrupted_collection_the_collector_can_go_on(make_collector, tasks):
    calls = []

    def interrupt():
        calls.append(None)
        if len(calls) == 3:
            raise KeyboardInterrupt

    collector = make_collector(lambda turn, _: solve(tasks[0])[turn])
    jobs = [Job(tasks[0], m, 5, 1) for m in range(4)]
    with pytest.raises(KeyboardInterrupt):
        collector.collect(jobs, purpose="test", interrupt=interrupt)
    episodes = collector.collect(jobs, purpose="test")
    assert all(episode.success for episode in episodes)


@pytest.mark.parametrize("workers", ["threads", "forkserver"])
def test_other_workers_play_the_same_episodes_as_in_line_ones(make_collector, tasks, workers):
    def play(workers):
        collector = make_collector(
            lambda turn, _: ["add 1", "roll", "done"][turn], num_envs=4, workers=workers
        )
        jobs = list(group_jobs(tasks, group_size=2, horizon=4, seed=5))
        return [episode.to_json() for episode in collector.collect(jobs, purpose="test")]

    assert play(workers) == play("inline")
