"""All shipped wrappers and stacks of them: the kit, specs, vectors, Gymnasium's own wrappers."""

import functools
import inspect
import pickle

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv
from gymnasium.envs.registration import EnvSpec
from prose import ProseEnv

from agentgym_envs import testing, wrappers
from agentgym_envs.errors import InvalidState
from agentgym_envs.policies import ScriptedPolicy, run_episode
from agentgym_envs.registration import registered_ids
from agentgym_envs.testing import CHECKS, check_text_env, shipped_wrappers, wrapped
from agentgym_envs.vector import WORKERS
from agentgym_envs.wrappers import (
    History,
    InvalidActions,
    RecordEpisodes,
    RewardShaping,
    TextWrapper,
    TokenBudget,
    TurnBudget,
)

gymnasium.register(
    "Test/Prose-v0",
    entry_point=f"{ProseEnv.__module__}:ProseEnv",
    order_enforce=False,
    disable_env_checker=True,
)

NINE = {"task": "counting/train/9"}
NAMES = list(shipped_wrappers(""))
IN_OTHER_PROCESSES = {
    testing.check_processes,
    testing.check_silence,
    testing.check_stock_vector,
    testing.check_text_vector,
    testing.check_hostile_text,
    testing.check_save_load,
}


@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_wrapper_keeps_the_contract(name, tmp_path):
    in_this_process = [check for check in CHECKS if check not in IN_OTHER_PROCESSES]
    checks = CHECKS if name == "stack" else in_this_process
    check_text_env(wrapped("Test/Counting-v0", shipped_wrappers(str(tmp_path))[name]), checks)


@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Test/Counting-v0", *registered_ids()])
@pytest.mark.parametrize("name", NAMES)
def test_every_shipped_wrapper_keeps_the_contract_of_every_family(name, env_id, tmp_path):
    check_text_env(wrapped(env_id, shipped_wrappers(str(tmp_path))[name]))


def test_a_stack_keeps_the_contract_of_every_family(tmp_path):
    checks = (
        testing.check_gymnasium,
        testing.check_info,
        testing.check_spec,
        testing.check_save_load,
        testing.check_clone,
        testing.check_oracle,
        testing.check_text_vector,
    )
    for env_id in registered_ids():
        check_text_env(wrapped(env_id, shipped_wrappers(str(tmp_path))["stack"]), checks)


def test_pictures_of_a_family_without_any_keep_the_contract():
    def make(**kwargs):
        return wrappers.RenderText(gymnasium.make("Test/Prose-v0", **kwargs), columns=20, rows=8)

    check_text_env(make, (testing.check_gymnasium, testing.check_render, testing.check_spec))


def test_all_wrappers_from_text_to_text_are_checked():
    shipped = {
        name
        for name, value in vars(wrappers).items()
        if inspect.isclass(value) and issubclass(value, TextWrapper)
    }
    assert shipped == set(NAMES) - {"stack"}


def stack(env, folder) -> RecordEpisodes:
    return shipped_wrappers(str(folder))["stack"](env)


def layers(env):
    while isinstance(env, TextWrapper):
        yield env
        env = env.env


def test_a_spec_with_all_wrappers_makes_the_same_environment(tmp_path):
    env = stack(gymnasium.make("Test/Counting-v0", action_format="react"), tmp_path)
    spec = EnvSpec.from_json(env.spec.to_json())
    assert spec == env.spec
    made = gymnasium.make(spec)
    assert [type(layer) for layer in layers(made)] == [type(layer) for layer in layers(env)]
    assert [layer._arguments for layer in layers(made)] == [
        layer._arguments for layer in layers(env)
    ]
    assert made.action_format == "react"
    assert run_episode(made, **NINE) == run_episode(env, **NINE)


def test_arguments_left_out_are_recorded_too():
    env = History(gymnasium.make("Test/Counting-v0"))
    assert env.spec.additional_wrappers[0].kwargs == {"turns": 4, "max_characters": None}


def test_a_stack_can_be_pickled_and_made_by_gymnasiums_make_vec(tmp_path):
    wraps = [
        functools.partial(History, turns=2),
        functools.partial(TokenBudget, max_tokens=6),
        functools.partial(RecordEpisodes, folder=str(tmp_path)),
    ]
    wraps = pickle.loads(pickle.dumps(wraps))
    envs = gymnasium.make_vec("Test/Counting-v0", num_envs=2, env_wrappers=wraps)
    envs.reset(options={"tasks": [NINE["task"]] * 2, "horizons": [9, 2]})
    envs.step(("add 1", "add 2"))
    observations, _, _, truncations, infos = envs.step(("add 1", "add 2"))
    assert truncations.tolist() == [False, True]
    assert infos["end_reason"].tolist() == ["", "horizon"]
    assert "[Turn 1, your reply]\nadd 2" in observations[1]
    envs.close()


@pytest.mark.parametrize("workers", WORKERS)
def test_positions_of_a_vector_end_each_by_its_own_budget(make_vector, workers):
    wraps = [
        functools.partial(InvalidActions, cost=0.5, limit=2),
        functools.partial(TokenBudget, max_tokens=4),
    ]
    envs = make_vector(num_envs=4, env_wrappers=wraps, workers=workers)
    envs.reset(options={"tasks": [NINE["task"]] * 4, "horizons": [9, 9, 2, 9]})
    envs.step(("x", "add 9", "y", "add 1"))
    _, rewards, terminations, truncations, infos = envs.step(("x", "add it up 1 2 3", "roll", "x"))
    assert infos["end_reason"].tolist() == ["failure", "budget", "horizon", ""]
    assert rewards.tolist() == [-0.5, -0.5, 0.0, -0.5]
    assert infos["env_reward"].tolist() == [0.0] * 4
    assert terminations.tolist() == [True, False, False, False]
    assert truncations.tolist() == [False, True, True, False]
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"\[0, 1, 2\]"):
        envs.step(("x",) * 4)


def test_autoreset_begins_a_full_budget(make_vector):
    wraps = [functools.partial(TokenBudget, max_tokens=4)]
    envs = make_vector(num_envs=1, env_wrappers=wraps, autoreset_mode="NextStep")
    envs.reset()
    ends = [bool(envs.step(("add 1",))[3][0]) for _ in range(6)]
    assert ends == [False, True, False] * 2


def test_a_limit_of_the_vector_and_a_turn_budget_hold_together(make_vector):
    for budget, limit in ((2, 3), (3, 2)):
        wraps = [functools.partial(TurnBudget, max_turns=budget)]
        envs = make_vector(num_envs=1, env_wrappers=wraps, max_episode_steps=limit)
        envs.reset()
        assert envs.get_attr("horizon") == (2,)


def test_gymnasiums_own_wrappers_go_outside():
    env = TokenBudget(History(CountingEnv(), turns=1), max_tokens=6)
    env = gymnasium.wrappers.RecordEpisodeStatistics(gymnasium.wrappers.TimeLimit(env, 9))
    env.reset(options=NINE)
    env.step("add 9")
    env.step("x")
    *_, truncated, info = env.step("add it up")
    assert (truncated, info["end_reason"]) == (True, "budget")
    assert (info["episode"]["l"], info["episode"]["r"]) == (3, 0.5)
    short = gymnasium.wrappers.TimeLimit(TokenBudget(CountingEnv(), max_tokens=100), 2)
    episode = run_episode(short, ScriptedPolicy(["x"]), **NINE)
    assert (episode.end_reason, len(episode.turns)) == ("horizon", 2)


def test_the_order_of_wrappers_is_the_order_of_what_they_do(tmp_path):
    """Shaping outside sees the cost inside, and the other way around."""
    costly = InvalidActions(CountingEnv(), cost=1.0)
    shaped = RewardShaping(costly, function="shaping:length_cost")
    costlier = InvalidActions(
        RewardShaping(CountingEnv(), function="agentgym_envs.outcomes:score_gain"), cost=1.0
    )
    for env, expected in ((shaped, -1.0 - 0.1), (costlier, -1.0)):
        env.reset(options=NINE)
        _, reward, *_, info = env.step("x")
        assert (reward, info["env_reward"]) == (pytest.approx(expected), 0.0)


def test_states_go_to_the_same_stack_only(tmp_path):
    def first(env):
        return TokenBudget(History(env), max_tokens=9)

    def second(env):
        return History(TokenBudget(env, max_tokens=9))

    env, other = first(CountingEnv()), second(CountingEnv())
    for each in (env, other):
        each.reset(options=NINE)
        each.step("add 1")
    for here, there in ((env, other), (other, env), (env, env.env), (env.env, env)):
        before = here.save_state()
        with pytest.raises(InvalidState, match="state"):
            here.load_state(there.save_state())
        assert here.save_state() == before


@pytest.mark.parametrize("seed", range(40))
def test_any_stack_goes_on_identically_from_any_turn(seed):
    """Tight limits in a random order, random replies; loaded into a fresh stack and cloned."""
    rng = np.random.default_rng(seed)
    tight = [
        functools.partial(InvalidActions, cost=0.5, limit=3),
        functools.partial(RewardShaping, potential="score", discount=0.5),
        functools.partial(TurnBudget, max_turns=int(rng.integers(1, 12))),
        functools.partial(TokenBudget, max_tokens=int(rng.integers(1, 20))),
        functools.partial(History, turns=2, max_characters=300),
        functools.partial(wrappers.RenderText, columns=20, rows=8, scale=1),
    ]
    chosen = [tight[int(index)] for index in rng.permutation(len(tight))]

    def make():
        env = CountingEnv(info_keys=("admissible", "state_key"))
        for wrap in chosen:
            env = wrap(env)
        return env

    replies = [str(rng.choice(["add 1", "add 9", "roll", "done", "x", "a b c"])) for _ in range(12)]
    env, states, transcript = make(), [], []
    env.reset(seed=seed)
    for reply in replies:
        states.append((env.save_state(), env.clone()))
        transcript.append(env.step(reply))
        if transcript[-1][2] or transcript[-1][3]:
            break
    last = transcript[-1]
    assert (last[2] or last[3], bool(last[4]["end_reason"]), last[4]["admissible"]) == (
        True,
        True,
        [],
    )
    for turn, (state, twin) in enumerate(states):
        other = make()
        other.load_state(state)
        for copy in (other, twin):
            assert [copy.step(reply) for reply in replies[turn : len(transcript)]] == transcript[
                turn:
            ]
            assert (copy.render() == env.render()).all()
            with pytest.raises(gymnasium.error.ResetNeeded):
                copy.step("add 1")


def test_what_plays_no_part_may_differ(tmp_path):
    env = RecordEpisodes(wrappers.RenderText(CountingEnv()), str(tmp_path / "one"))
    other = RecordEpisodes(wrappers.RenderText(CountingEnv(), rows=8), str(tmp_path / "two"), "x")
    env.reset(options=NINE)
    other.load_state(env.save_state())
    assert other.step("add 9") == env.step("add 9")


def test_a_do_nothing_stack_gives_the_transcript_of_the_bare_environment():
    plain, env = CountingEnv(), CountingEnv()
    for wrap in (
        functools.partial(TurnBudget, max_turns=10**9),
        functools.partial(TokenBudget, max_tokens=10**9),
        functools.partial(wrappers.WallClockBudget, seconds=10**9),
        functools.partial(wrappers.RenderText),
    ):
        env = wrap(env)
    assert env.reset(seed=3) == plain.reset(seed=3)
    for reply in ("roll", "x", "roll", "done"):
        assert env.step(reply) == plain.step(reply)
