"""Checks of saving, loading, cloning and state keys. Families that cannot are left alone."""

from __future__ import annotations

import dataclasses

import gymnasium

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import InvalidState
from agentgym_envs.testing.base import (
    JUNK,
    MakeEnv,
    Script,
    Transcript,
    bare,
    begin,
    conformance_check,
    encode_state,
    has,
    made,
    must_raise,
    play,
    play_all,
    require,
    require_equal,
    turns,
    write_scripts,
)
from agentgym_envs.testing.child import play_in_child


def _cuts(transcript: Transcript) -> list[int]:
    """Numbers of turns after which to save: none, some, all."""
    played = len(transcript) - 1
    return sorted({0, played // 2, played})


def _go_to(env: TextEnv, script: Script, num_turns: int) -> None:
    begin(env, script)
    list(turns(env, script.replies[:num_turns]))


@conformance_check
def check_save_load(make: MakeEnv) -> None:
    """A loaded state continues identically, here and in another process; saving changes nothing."""
    scripts = write_scripts(make)
    with made(make) as env, made(make) as other:
        if not has(env, "clone"):
            return
        continued, expected = [], []
        for script in scripts:
            transcript = play(other, script)
            for cut in _cuts(transcript):
                what = f"{script.task_id}, saved after turn {cut}"
                _go_to(env, script, cut)
                state = env.save_state()
                require(isinstance(state, bytes), f"save_state() returns {type(state).__name__}.")
                require(not state.startswith(b"\x80"), "A saved state must not be a pickle.")
                rest, rest_replies = transcript[cut + 1 :], script.replies[cut:]
                require_equal(list(turns(env, rest_replies)), rest, f"{what}, played on")
                other.load_state(state)
                require_equal(other.task.id, script.task_id, f"the task, {what}")
                require_equal(bare(other).goal, bare(env).goal, f"the goal, {what}")
                require_equal(other.save_state(), state, f"saved again, {what}")
                if not rest:
                    if transcript[-1][-1]["end_reason"]:
                        with must_raise(gymnasium.error.ResetNeeded, f"step() at the end, {what}"):
                            other.step(JUNK)
                    continue
                require_equal(list(turns(other, rest_replies)), rest, f"{what}, loaded")
                encoded = encode_state(state)
                continued.append(dataclasses.replace(script, replies=rest_replies, state=encoded))
                expected.append(rest)
                env.load_state(state)
                other.load_state(state)
                require_equal(env.reset(), other.reset(), f"{what}, reset after loading")
        found = play_in_child(env, continued).transcripts
        require_equal(found, expected, "loaded in another process")


@conformance_check
def check_state_refusals(make: MakeEnv) -> None:
    """A state of another family, version or set of arguments is refused and changes nothing."""
    (script, *_) = write_scripts(make, num_tasks=1)
    with made(make) as env:
        if not has(env, "clone"):
            return
        with must_raise(gymnasium.error.ResetNeeded, "save_state() before reset()"):
            env.save_state()
        _go_to(env, script, 1)
        state = env.save_state()
        for name in ("family", "version"):
            with made(make) as other:
                vars(other.unwrapped)[name] = "another"
                with must_raise(InvalidState, f"load_state() of another {name}"):
                    other.load_state(state)
        another = next(name for name in ACTION_FORMATS if name != env.action_format)
        with made(make, action_format=another) as other:
            with must_raise(InvalidState, "load_state() of other arguments"):
                other.load_state(state)
            with must_raise(gymnasium.error.ResetNeeded, "step() after a load that failed"):
                other.step(JUNK)
        for broken in (b"", b"{}", b"[]", b"null", b"\xff\xfe", state[: len(state) // 2]):
            with must_raise(InvalidState, f"load_state({broken!r:.40})"):
                env.load_state(broken)
            require_equal(env.save_state(), state, "the state after a load that failed")


@conformance_check
def check_clone(make: MakeEnv) -> None:
    """A clone continues identically, and neither it nor the original disturbs the other."""
    scripts = write_scripts(make)
    with made(make) as env:
        if not has(env, "clone"):
            return
        for script, transcript in zip(scripts, play_all(make, scripts), strict=True):
            cut = _cuts(transcript)[1]
            rest, replies = transcript[cut + 1 :], script.replies[cut:]
            _go_to(env, script, cut)
            first, second = env.clone(), env.clone()
            require(type(first) is type(env), f"The clone is a {type(first).__name__}.")
            require_equal(list(turns(first, replies)), rest, "the first clone")
            first.reset(seed=99)
            first.close()
            require_equal(list(turns(env, replies)), rest, "the original after its clone")
            env.reset(seed=98)
            require_equal(list(turns(second, replies)), rest, "the second clone after the original")
            second.close()


@conformance_check
def check_state_key(make: MakeEnv) -> None:
    """Equal states have equal keys: the turn, refused replies and random state play no part."""
    scripts = write_scripts(make)
    with made(make) as env, made(make) as other:
        if not has(env, "state_key"):
            return
        seen = set()
        for script in scripts:
            begin(env, script)
            begin(other, dataclasses.replace(script, seed=script.seed + 1))
            require_equal(env.state_key(), other.state_key(), "keys at the start, seeds differ")
            begin(other, script)
            for turn, reply in enumerate(script.replies):
                key = env.state_key()
                seen.add(key)
                require_equal(env.state_key(), key, f"the key asked twice, turn {turn}")
                require_equal(other.state_key(), key, f"the key of another instance, turn {turn}")
                if has(env, "clone"):
                    require_equal(env.clone().state_key(), key, f"the clone's key, turn {turn}")
                *_, info = env.step(reply)
                other.step(reply)
                if not info["action_valid"]:
                    require_equal(env.state_key(), key, f"the key after a refused reply, {turn}")
        require(len(seen) > 1, "Every state has the same key.")
