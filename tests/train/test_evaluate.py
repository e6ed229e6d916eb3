"""Evaluation within a run: sampled and greedy, the same tasks and random numbers every time."""

import pytest
from counting import CountingEnv

from agentgym_envs.episodes import EndReason
from agentgym_envs.errors import EnvFault, InvalidEvaluation, InvalidTask
from agentgym_envs.evaluation import EvalPlan
from agentgym_envs.vector import TextVectorEnv
from agentgym_train.chat.template import ChatTemplate
from agentgym_train.chat.tokenizer import train_tokenizer
from agentgym_train.engines.torch import TorchEngine
from agentgym_train.errors import ConfigError, TooManyFaults
from agentgym_train.evaluate import EvalConfig, evaluate, play_tokens
from agentgym_train.model import create_model
from agentgym_train.rollout.collector import Collector, EpisodeContext, SamplingConfig


@pytest.fixture
def make_collector():
    """Collectors around one untrained model."""
    made = []
    tokenizer = train_tokenizer(["add 3", "done", "The counter shows 0.", "roll"], 280)
    sizes = {"hidden_size": 16, "num_layers": 1, "num_heads": 2, "max_context": 512}
    model = create_model(len(tokenizer), **sizes, seed=0)
    template = ChatTemplate(tokenizer)

    def make(num_envs=4, seed=7, world=CountingEnv):
        engine = TorchEngine(
            model, stop_ids=template.stop_ids, max_streams=num_envs, max_context=512
        )
        envs = TextVectorEnv(lambda: world(highest=30), num_envs)
        made.append(envs)
        return Collector(
            envs,
            engine,
            template,
            sampling=SamplingConfig(max_tokens=5),
            context=EpisodeContext("Test/Counting-v0", "command", {"counting": "rules"}, {}),
            seed=seed,
            show_instructions=False,
        )

    yield make
    for envs in made:
        envs.close()


@pytest.fixture
def tasks():
    return list(CountingEnv(highest=30).tasks)


def replies(episodes):
    return [[turn.sampled_ids for turn in episode.turns] for episode in episodes]


def test_two_evaluations_of_the_same_weights_agree_however_many_environments(make_collector, tasks):
    first = evaluate(make_collector(num_envs=4), tasks, horizon=3)
    second = evaluate(make_collector(num_envs=3), tasks, horizon=3)
    assert first.to_json() == second.to_json()
    assert (first.split, first.horizon, first.to_json()["n"]) == ("train", 3, 10)


def test_sampled_and_greedy_are_what_their_names_say(make_collector, tasks):
    collector = make_collector()
    plan = EvalPlan("Test/Counting-v0", {}, tuple(tasks), 2, k=2, seed=7)
    jobs = list(plan.jobs())
    greedy = play_tokens(collector, plan, jobs, temperature=0.0)
    assert replies(greedy)[::2] == replies(greedy)[1::2]
    sampled = play_tokens(collector, plan, jobs)
    assert replies(sampled)[::2] != replies(sampled)[1::2]
    assert [(episode.task, episode.member) for episode in sampled] == [
        (job.task, job.member) for job in jobs
    ]


def test_a_try_does_not_depend_on_how_many_there_are(make_collector, tasks):
    once, thrice = (EvalPlan("Test/Counting-v0", {}, tuple(tasks), 2, k=k, seed=7) for k in (1, 3))
    alone = play_tokens(make_collector(), once, list(once.jobs()))
    among = play_tokens(make_collector(), thrice, list(thrice.jobs()))
    assert replies(alone) == replies(among[::3])


def test_another_seed_samples_other_replies(make_collector, tasks):
    plan = EvalPlan("Test/Counting-v0", {}, tuple(tasks), 2)
    found = [
        replies(play_tokens(make_collector(seed=seed), plan, list(plan.jobs()))) for seed in (1, 2)
    ]
    assert found[0] != found[1]


def test_an_evaluation_can_be_interrupted(make_collector, tasks):
    def stop():
        raise KeyboardInterrupt

    collector = make_collector()
    with pytest.raises(KeyboardInterrupt):
        evaluate(collector, tasks, horizon=3, interrupt=stop)
    evaluate(collector, tasks[:2], horizon=1)


def test_the_share_that_may_break_is_one_of_all_episodes_and_not_of_those_left(
    make_collector, tasks
):
    class Broken(CountingEnv):
        def reset(self, *, seed=None, options=None):
            if options["task"].payload["number"] <= 6:
                raise EnvFault("the wall is gone")
            return super().reset(seed=seed, options=options)

    plan = EvalPlan("Test/Counting-v0", {}, tuple(tasks), 1, k=2, seed=7)
    left = [job for job in plan.jobs() if job.task.payload["number"] == 3]
    episodes = play_tokens(make_collector(world=Broken), plan, left)  # 2 of 20, at most a tenth
    assert [episode.end_reason for episode in episodes] == [EndReason.FAULT] * 2
    with pytest.raises(TooManyFaults, match="of 20 episodes broke twice, more than the 2"):
        play_tokens(make_collector(world=Broken), plan, list(plan.jobs()))


def test_no_task_and_a_task_twice_are_refused(make_collector, tasks):
    with pytest.raises(InvalidEvaluation, match="the task set is empty"):
        evaluate(make_collector(), [], horizon=3)
    with pytest.raises(InvalidTask, match="more than once"):
        evaluate(make_collector(), [tasks[0], tasks[0]], horizon=3)


@pytest.mark.parametrize(("name", "value"), [("tasks", 0), ("horizon", 0), ("every", -1)])
def test_settings_out_of_range_are_named(name, value):
    with pytest.raises(ConfigError, match=rf"eval\.{name}\b.*{value}"):
        EvalConfig(**{name: value})
