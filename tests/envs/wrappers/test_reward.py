import pytest
from counting import CountingEnv

from agentgym_envs.errors import InvalidState, UnknownName
from agentgym_envs.wrappers import RewardShaping, TokenBudget

NINE = {"task": "counting/train/9"}


def rewards(env, replies):
    env.reset(options=NINE)
    entries = [env.step(reply) for reply in replies]
    return [entry[1] for entry in entries], [entry[4]["env_reward"] for entry in entries]


def test_a_function_named_by_its_path_makes_the_reward():
    env = RewardShaping(CountingEnv(), function="shaping:length_cost")
    _, info = env.reset(options=NINE)
    assert info["env_reward"] == 0.0
    found, own = rewards(env, ["add 9", "x", "done"])
    assert found == pytest.approx([0.5 - 0.5, -0.1, 0.5 - 0.4])
    assert own == [0.5, 0.0, 0.5]


def test_a_function_sees_the_whole_turn():
    env = RewardShaping(CountingEnv(), function="shaping:seen")
    found, _ = rewards(env, ["add 9", "take away 1", "take away 1"])
    assert found == [0.5 + 100 + 10 + 10, -0.5 + 200 + 10 + 10, 300 + 10 + 10]


def test_a_familys_own_reward_function_will_do():
    env = RewardShaping(CountingEnv(reward="double"), function="agentgym_envs.outcomes:score_gain")
    assert rewards(env, ["add 9", "done"]) == ([0.5, 0.5], [1.0, 1.0])


def test_a_potential_is_added_and_taken_back_at_the_end():
    env = RewardShaping(CountingEnv(), potential="score", discount=0.5)
    found, own = rewards(env, ["add 8", "add 1", "x", "done"])
    assert own == [0.0, 0.5, 0.0, 0.5]
    # Potentials 0, 0, 0.5, 0.5 and, after the end, 0.
    assert found == [0.0, 0.5 + 0.25, 0.25 - 0.5, 0.5 - 0.5]


@pytest.mark.parametrize("replies", [["add 9", "done"], ["done"], ["x"] * 6, ["add 1"] * 3])
def test_a_potential_changes_every_discounted_return_by_the_same(replies):
    discount = 0.75
    env = RewardShaping(
        TokenBudget(CountingEnv(), max_tokens=6),
        potential="shaping:turns_played",
        discount=discount,
    )
    found, own = rewards(env, replies)
    factors = [discount**turn for turn in range(len(found))]
    shaped = sum(f * r for f, r in zip(factors, found, strict=True))
    unshaped = sum(f * r for f, r in zip(factors, own, strict=True))
    assert shaped == pytest.approx(unshaped)  # the potential is 0 at the start


def test_function_and_potential_add_up():
    env = RewardShaping(
        CountingEnv(), function="shaping:length_cost", potential="shaping:turns_played"
    )
    found, _ = rewards(env, ["add 9", "done"])
    assert found == pytest.approx([0.5 - 0.5 + 0.1, 0.5 - 0.4 - 0.1])


def test_infos_stay_as_they_are_and_cannot_be_changed_by_a_function():
    plain, shaped = CountingEnv(), RewardShaping(CountingEnv(), potential="score")
    plain.reset(options=NINE)
    shaped.reset(options=NINE)
    info, expected = shaped.step("add 9")[4], plain.step("add 9")[4]
    assert info == expected | {"env_reward": 0.5}
    assert type(info) is dict


def test_saved_states_and_clones_keep_score_and_potential():
    env = RewardShaping(CountingEnv(), function="shaping:seen", potential="score")
    env.reset(options=NINE)
    env.step("add 9")
    state, twin = env.save_state(), env.clone()
    expected = env.step("take away 1")
    assert expected[1] == -0.5 + 200 + 10 + 10 - 0.5
    env.reset(options=NINE)
    env.load_state(state)
    assert env.step("take away 1") == twin.step("take away 1") == expected
    with pytest.raises(InvalidState, match="not what RewardShaping remembers"):
        env.load_state(state.replace(b'"potential":0.5', b'"potential":null'))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, ValueError, "needs a function, a potential, or both; got neither"),
        ({"function": "length_cost"}, ValueError, "\"package.module:function\", got 'length_cost'"),
        (
            {"function": "shaping:nowhere"},
            ValueError,
            "there is no 'nowhere' in a module 'shaping'",
        ),
        ({"function": 3}, TypeError, "got 3"),
        ({"function": max}, TypeError, "arguments of wrappers are JSON values"),
        ({"potential": "scor"}, UnknownName, "did you mean 'score'"),
        ({"potential": "score", "discount": 1.5}, ValueError, r"discount must be in 0\.\.1, got 1"),
        ({"potential": "score", "discount": -1}, ValueError, "finite number of at least 0, got -1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        RewardShaping(CountingEnv(), **arguments)


def test_a_function_that_gives_no_number_is_refused():
    env = RewardShaping(CountingEnv(), function="shaping:nothing")
    env.reset()
    with pytest.raises(ValueError, match=r"what the reward function returns .* got None"):
        env.step("add 1")
