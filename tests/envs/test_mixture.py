"""Several families behind one id."""

from collections import Counter

import gymnasium
import pytest

from agentgym_envs.errors import InvalidState, InvalidTask, UnknownName
from agentgym_envs.mixture import MIXTURE_ID, MixtureEnv
from agentgym_envs.policies import run_episode
from agentgym_envs.testing import CHECKS, check_text_env

BABYAI, TEXTCRAFT = "AgentGym/BabyAI-v0", "AgentGym/TextCraft-v0"
ENVS = {BABYAI: {"levels": "redball"}, TEXTCRAFT: {}}


def make(**arguments):
    return gymnasium.make(MIXTURE_ID, **{"envs": ENVS, **arguments})


def test_a_mixture_passes_the_kit():
    # But for the check that tasks are of the environment's own family: here they keep theirs.
    checks = [check for check in CHECKS if check.__name__ != "check_tasks"]
    check_text_env(make, checks)


def test_its_tasks_are_those_of_the_families_in_turns():
    """So that a held-out split of so many tasks holds tasks of all families."""
    env = make(split="test")
    babyai, textcraft = (gymnasium.make(one, split="test", **ENVS[one]).tasks.ids for one in ENVS)
    count = len(textcraft)
    assert len(babyai) > count
    in_turns = [task for pair in zip(babyai, textcraft, strict=False) for task in pair]
    assert env.tasks.ids == (*in_turns, *babyai[count:])
    assert env.tasks[textcraft[3]].id == env.tasks[7].id == textcraft[3]
    assert textcraft[3] in env.tasks
    assert env.tasks.position(babyai[-1]) == len(env.tasks) - 1


def test_each_family_has_instructions_of_its_own():
    env = make()
    env.reset(seed=0)
    assert env.instructions_by_family == {
        "babyai": gymnasium.make(BABYAI, **ENVS[BABYAI]).instructions,
        "textcraft": gymnasium.make(TEXTCRAFT).instructions,
    }


@pytest.mark.parametrize(("env_id", "family"), [(BABYAI, "babyai"), (TEXTCRAFT, "textcraft")])
def test_an_episode_is_what_the_family_alone_would_play(env_id, family):
    mixed, alone = make(split="dev"), gymnasium.make(env_id, split="dev", **ENVS[env_id])
    task = alone.tasks[3]
    mixed.reset(seed=1, options={"task": make(split="dev").tasks[0]})  # whatever came before
    records = [run_episode(env, env.oracle(), task=task, seed=5) for env in (mixed, alone)]
    assert mixed.instructions == alone.instructions
    assert records[0].success
    assert [(t.reply, t.observation, t.reward) for t in records[0].turns] == [
        (t.reply, t.observation, t.reward) for t in records[1].turns
    ]
    assert records[0].task.family == family


def test_the_goal_is_as_the_family_states_it():
    env = make(envs={BABYAI: ENVS[BABYAI], "Test/Coy-v0": {}})
    observation, _ = env.reset(options={"task": "counting/train/9"})
    assert (env.task.goal, env.goal) == ("number 9", "Count to 9.")
    assert observation.startswith(env.goal)
    with pytest.raises(UnknownName):
        env.reset(options={"task": "counting/train/no such"})
    with pytest.raises(gymnasium.error.ResetNeeded):
        _ = env.unwrapped.goal


def test_families_are_drawn_by_their_weights():
    env = make(weights={BABYAI: 3.0})
    env.reset(seed=0)
    drawn = Counter()
    for _ in range(400):
        env.reset()
        drawn[env.task.family] += 1
    assert 270 <= drawn["babyai"] <= 330  # 300 expected, standard deviation 8.7


def test_draws_among_named_tasks_keep_the_weights():
    tasks = [make().tasks[0].id, *(gymnasium.make(TEXTCRAFT).tasks.head(30).ids)]
    env = make(tasks=tasks)
    env.reset(seed=0)
    families = Counter()
    for _ in range(200):
        env.reset()
        assert env.task.id in tasks
        families[env.task.family] += 1
    assert 70 <= families["babyai"] <= 130
    only_one = make(tasks=tasks[1:])
    only_one.reset(seed=0)
    assert only_one.task.family == "textcraft"


def test_the_same_seed_draws_the_same_episode():
    first, second = make(), make()
    for env in (first, second):
        env.reset(seed=7)
    assert [first.reset()[0] for _ in range(6)] == [second.reset()[0] for _ in range(6)]


def test_item_ids_of_agentgym_go_to_their_family():
    env = make(tasks=["textcraft_3", "babyai_0"])
    assert [task.family for task in env.tasks] == ["textcraft", "babyai"]


def test_a_saved_state_goes_on_in_its_family():
    env = make()
    env.reset(seed=0, options={"task": gymnasium.make(TEXTCRAFT).tasks[5]})
    state = env.save_state()
    env.reset(options={"task": make().tasks[0]})
    env.load_state(state)
    assert env.task.family == "textcraft"
    twin = env.clone()
    assert twin.step("inventory")[0] == env.step("inventory")[0]
    with pytest.raises(InvalidState):
        make(weights={BABYAI: 2.0}).load_state(state)


def test_a_vector_plays_both_families(make_vector):
    envs = make_vector(MIXTURE_ID, num_envs=2, envs=ENVS)
    tasks = [make().tasks[0], gymnasium.make(TEXTCRAFT).tasks[0]]
    _, infos = envs.reset(options={"tasks": tasks})
    assert list(infos["task_id"]) == [task.id for task in tasks]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"envs": {}}, ValueError, "got {}"),
        ({"envs": [BABYAI]}, ValueError, "arguments of each environment by its id"),
        ({"envs": {"AgentGym/BabyAy-v0": {}}}, UnknownName, "did you mean 'AgentGym/BabyAI-v0'"),
        ({"envs": {TEXTCRAFT: {"levels": "x"}}}, UnknownName, "levels"),
        ({"envs": {"CartPole-v1": {}}}, TypeError, "no text environment"),
        ({"weights": {"AgentGym/SciWorld-v0": 1}}, UnknownName, "AgentGym/SciWorld-v0"),
        ({"weights": {BABYAI: 0}}, ValueError, "above 0"),
        ({"weights": {BABYAI: float("nan")}}, ValueError, "must be a finite number, got nan"),
        ({"weights": {BABYAI: "2"}}, ValueError, "'AgentGym/BabyAI-v0' must be a finite number"),
        ({"envs": {TEXTCRAFT: 3}}, TypeError, "'AgentGym/TextCraft-v0' must be a table, got 3"),
        (
            {"envs": {TEXTCRAFT: {"split": "train", "action_format": "json"}}},
            ValueError,
            "split, action_format must be the same for all .* instead of 'AgentGym/TextCraft-v0'",
        ),
        ({"colour": "red"}, UnknownName, "colour"),
    ],
)
def test_what_cannot_be_mixed_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        make(**arguments)


def test_a_family_may_be_there_once():
    with pytest.raises(ValueError, match="may be in a mixture once, got babyai, babyai"):
        MixtureEnv(envs={BABYAI: {}, f"agentgym_envs:{BABYAI}": {}})


def test_a_task_of_another_family_is_refused():
    task = gymnasium.make("Test/Counting-v0").tasks[0]
    with pytest.raises(InvalidTask, match="no environment of this mixture plays"):
        make().reset(options={"task": task})
