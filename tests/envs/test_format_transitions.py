"""The same commands do the same, whichever action format carries them, in every family."""

import functools

import gymnasium
import pytest
from gymnasium.envs.registration import load_env_creator
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.policies import run_episode
from agentgym_envs.registration import registered_ids

FAMILIES = [
    (env_id, compat)
    for env_id in [*registered_ids(), "Test/Counting-v0"]
    for compat in (None, *load_env_creator(gymnasium.spec(env_id).entry_point).compat_modes)
]

few = settings(max_examples=15, deadline=None, derandomize=True, database=None)


@functools.cache
def make(env_id, compat, action_format, strict=False):
    """One environment for all examples: making one may take longer than playing it."""
    return gymnasium.make(
        env_id,
        compat=compat,
        action_format=action_format,
        strict=strict,
        info_keys=["admissible", "state_key"],
    )


def transitions(env, seed, commands):
    """What `reset` gives and what `step` gives for each command until the episode ends."""
    entries = [env.reset(seed=seed)]
    for command in commands:
        entries.append(env.step(env.unwrapped.render_command(command)))
        if entries[-1][2] or entries[-1][3]:
            break
    return entries


def walk(env, seed, choices):
    """Commands that the world carries out, and now and then one that it refuses."""
    _, info = env.reset(seed=seed)
    for choice in choices:
        known = [*info["admissible"], *env.unwrapped.grammar.examples]
        command = known[choice % len(known)]
        yield command
        *_, terminated, truncated, info = env.step(env.unwrapped.render_command(command))
        if terminated or truncated:
            return


@pytest.mark.parametrize(("env_id", "compat"), FAMILIES)
@few
@given(
    seed=st.integers(0, 2**31 - 1),
    choices=st.lists(st.integers(0, 10**6), min_size=1, max_size=8),
    strict=st.booleans(),
)
def test_the_same_commands_give_the_same_transitions(env_id, compat, seed, choices, strict):
    bare = make(env_id, compat, "command")
    commands = list(walk(bare, seed, choices))
    expected = transitions(bare, seed, commands)
    for name in ACTION_FORMATS:
        env = make(env_id, compat, name, strict)
        assert transitions(env, seed, commands) == expected, name


@pytest.mark.parametrize(("env_id", "compat"), FAMILIES)
def test_the_oracle_solves_the_same_way_in_every_format(env_id, compat):
    episodes = [run_episode(make(env_id, compat, name, True), seed=3) for name in ACTION_FORMATS]
    assert all(episode.success for episode in episodes)
    for episode in episodes[1:]:
        assert [(turn.observation, turn.reward) for turn in episode.turns] == [
            (turn.observation, turn.reward) for turn in episodes[0].turns
        ]


@pytest.mark.parametrize(("env_id", "compat"), FAMILIES)
def test_prompts_of_call_like_formats_show_no_bare_forms(env_id, compat):
    forms = [
        form
        for verb in make(env_id, compat, "command").unwrapped.grammar.verbs
        for form in verb.forms
        if "{" in form
    ]
    for name in ("json", "code", "tools"):
        env = make(env_id, compat, name).unwrapped
        for form in forms:
            readable = form.replace("{", "<").replace("}", ">")
            assert form not in env.instructions
            assert readable not in env.instructions
        assert all(f"\n- {verb.name}(" in env.instructions for verb in env.grammar.verbs)
