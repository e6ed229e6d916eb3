import gymnasium
import pytest
from counting import CountingEnv

from agentgym_envs.wrappers import InvalidActions, TokenBudget

NINE = {"task": "counting/train/9"}


def make(**arguments) -> InvalidActions:
    env = InvalidActions(CountingEnv(info_keys=("admissible",)), **arguments)
    env.reset(options=NINE)
    return env


def test_an_invalid_reply_costs_and_a_valid_one_does_not():
    env = make(cost=0.25)
    _, info = env.reset(options=NINE)
    assert info["env_reward"] == 0.0
    for reply, reward, env_reward in (
        ("nonsense", -0.25, 0.0),  # no command
        ("take away 1", -0.25, 0.0),  # a command that cannot be done
        ("add 9", 0.5, 0.5),
    ):
        _, found, terminated, truncated, info = env.step(reply)
        assert (found, info["env_reward"]) == (reward, env_reward)
        assert not terminated
        assert not truncated


def test_too_many_invalid_replies_fail_the_episode():
    env = make(cost=1.0, limit=2)
    env.step("nonsense")
    env.step("add 9")
    observation, reward, terminated, truncated, info = env.step("nonsense")
    assert observation.startswith('"nonsense" is not a command.')
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert (info["end_reason"], info["success"], info["score"]) == ("failure", False, 0.5)
    assert info["admissible"] == env.admissible() == []
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"InvalidActions ended .* \(failure\)"):
        env.step("done")
    env.reset(options=NINE)
    assert not env.step("nonsense")[2]


def test_in_a_row_counts_only_what_no_valid_reply_parts():
    env = make(limit=2, in_a_row=True)
    replies = ["x", "add 1", "x", "roll", "x", "x"]
    assert [env.step(reply)[2] for reply in replies] == [False] * 5 + [True]


def test_a_limit_reached_at_the_horizon_is_a_failure():
    env = make(limit=1)
    env.reset(options={"horizon": 1})
    *_, terminated, truncated, info = env.step("x")
    assert (terminated, truncated, info["end_reason"]) == (True, False, "failure")


def test_a_success_stays_one():
    env = make(cost=1.0, limit=1)
    env.step("add 9")
    _, reward, terminated, _, info = env.step("done")
    assert (reward, terminated, info["end_reason"]) == (0.5, True, "success")


def test_the_innermost_reward_is_the_environments_own():
    env = InvalidActions(InvalidActions(CountingEnv(), cost=1.0), cost=2.0)
    env.reset(options=NINE)
    _, reward, *_, info = env.step("x")
    assert (reward, info["env_reward"]) == (-3.0, 0.0)


def test_saved_states_and_clones_keep_the_count():
    env = make(limit=2)
    env.step("x")
    state, twin = env.save_state(), env.clone()
    other = make(limit=2)
    other.load_state(state)
    for loaded in (env, twin, other):
        assert loaded.step("x")[2]
    assert env.save_state() == other.save_state() == twin.save_state()


def test_a_truncated_episode_is_over_for_wrappers_outside():
    env = InvalidActions(TokenBudget(CountingEnv(), max_tokens=1), limit=5)
    env.reset(options=NINE)
    assert env.step("add 1")[3]
    with pytest.raises(gymnasium.error.ResetNeeded, match="TokenBudget ended the episode"):
        env.step("x")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"cost": -1}, ValueError),
        ({"cost": float("nan")}, TypeError),
        ({"cost": "1"}, ValueError),
        ({"limit": 0}, ValueError),
        ({"limit": 1.5}, ValueError),
        ({"in_a_row": None}, TypeError),
    ],
)
def test_wrong_arguments_are_refused(arguments, error):
    with pytest.raises(error, match="got"):
        InvalidActions(CountingEnv(), **arguments)
