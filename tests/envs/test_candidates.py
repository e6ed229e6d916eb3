"""`CandidateActions`: admissible commands as masked slots."""

import functools
import itertools

import gymnasium
import numpy as np
import pytest
from counting import BareEnv, CountingEnv
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from agentgym_envs.errors import InvalidState, UnknownName, Unsupported
from agentgym_envs.wrappers import CandidateActions, History
from agentgym_envs.wrappers.hashing import stable_hash

NINE = "counting/train/9"
AT_ZERO = ("add 1", "add 2", "add 9", "roll", "done")


def make(k=16, slots="listed", **kwargs):
    env = CandidateActions(gymnasium.make("Test/Counting-v0", **kwargs), k, slots)
    env.reset(seed=1, options={"task": NINE})
    return env


def test_listed_slots_hold_the_commands_in_the_order_of_the_family():
    env = make(k=8)
    assert env.action_space == gymnasium.spaces.Discrete(8)
    assert env.candidates == (*AT_ZERO, "", "", "")
    assert env.action_masks().tolist() == [True] * 5 + [False] * 3
    assert env.action_masks().dtype == bool


@pytest.mark.parametrize("action_format", ["command", "react"])
def test_a_slot_plays_its_command(action_format):
    env = make(action_format=action_format)
    observation, _, _, _, info = env.step(2)
    assert observation == "You add 9. The counter shows 9."
    assert info["action_valid"]
    _, reward, terminated, _, info = env.step(np.int64(env.slot_of("done")))
    assert (reward, terminated, info["success"]) == (0.5, True, True)


def test_the_hash_of_a_command_is_fixed():
    assert stable_hash("add 1") == 304136980336841724


def test_hashed_slots_keep_their_commands_while_the_state_changes():
    env = make(k=1009, slots="hashed")
    before = {command: env.slot_of(command) for command in AT_ZERO}
    assert before == {command: stable_hash(command) % 1009 for command in AT_ZERO}
    env.step(env.slot_of("add 9"))
    assert {command: env.slot_of(command) for command in AT_ZERO} == before
    assert env.slot_of("take away 1") == stable_hash("take away 1") % 1009


def test_a_command_whose_hashed_slot_is_taken_goes_to_the_next_free_one():
    env = make(k=5, slots="hashed")
    expected = [""] * 5
    for command in AT_ZERO:
        slot = next(
            slot
            for slot in itertools.islice(itertools.cycle(range(5)), stable_hash(command) % 5, None)
            if not expected[slot]
        )
        expected[slot] = command
    assert env.candidates == tuple(expected)
    assert sorted(env.candidates) == sorted(AT_ZERO)


def test_an_empty_slot_costs_a_turn_and_is_explained():
    env = make(k=8)
    key = env.state_key()
    observation, reward, terminated, truncated, info = env.step(6)
    assert observation.startswith("Slot 6 holds no command; these do: 0, 1, 2, 3, 4.\n")
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert (info["turn"], info["action_valid"]) == (1, False)
    assert env.state_key() == key


@pytest.mark.parametrize("action", [8, -1, np.int64(100)])
def test_an_index_out_of_range_raises_and_costs_nothing(action):
    env = make(k=8)
    with pytest.raises(ValueError, match=f"slots are numbered 0 to 7, got {action}"):
        env.step(action)
    assert env.step(0)[-1]["turn"] == 1


@pytest.mark.parametrize("action", [1.0, "add 1", True, None, np.array([0, 1])])
def test_what_is_no_whole_number_is_refused(action):
    with pytest.raises(TypeError, match="an action is the number of a slot, got"):
        make().step(action)


def test_info_tells_the_mask_and_how_many_commands_have_no_slot():
    env = make(k=8)
    _, info = env.reset(options={"task": NINE})
    assert info["candidates_left_out"] == 0
    assert info["action_mask"].dtype == np.int8
    assert info["action_mask"].tolist() == env.action_masks().astype(int).tolist()
    assert env.action_masks()[env.action_space.sample(mask=info["action_mask"])]


def test_where_there_are_too_many_commands_each_gets_its_turn():
    env = make(k=4)
    env.step(env.slot_of("add 9"))
    commands = {*AT_ZERO, "take away 1"}
    for _ in range(3):
        offered = set()
        for _ in range(2):  # ceil(6 / 4)
            offered.update(env.candidates)
            command = next(name for name in env.candidates if name != "done")
            *_, info = env.step(env.slot_of(command))
            assert info["candidates_left_out"] == 2
            assert info["action_mask"].all()
        assert offered == commands


def test_slots_are_masked_by_nothing_after_the_end():
    env = make(k=8)
    *_, terminated, _, info = env.step(env.slot_of("done"))
    assert terminated
    assert env.candidates == ("",) * 8
    assert env.action_masks().all()
    assert info["action_mask"].all()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(0)


def test_before_a_reset_there_are_no_candidates():
    env = CandidateActions(CountingEnv(), 8)
    for call in (lambda: env.candidates, env.action_masks, lambda: env.step(0)):
        with pytest.raises(gymnasium.error.ResetNeeded):
            call()
    env = make()
    with pytest.raises(UnknownName):
        env.reset(options={"task": "counting/train/1000"})
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.action_masks()


def test_a_command_without_a_slot_is_named():
    with pytest.raises(ValueError, match=r"no slot holds 'add 5'; the candidates are: add 1, add"):
        make().slot_of("add 5")
    with pytest.raises(ValueError, match="no slot holds ''"):
        make().slot_of("")


def test_what_text_environments_have_stays_reachable():
    env = make()
    bare = env.unwrapped
    for name in ("capabilities", "split", "tasks", "task", "horizon", "grammar", "instructions"):
        assert getattr(env, name) == getattr(bare, name)
    assert env.tools == bare.tools
    assert env.admissible() == bare.admissible()
    assert env.oracle().reply("", {}) == "add 9"
    with pytest.raises(AttributeError, match="'CandidateActions' object has no attribute 'tsak'"):
        _ = env.tsak


@pytest.mark.parametrize("slots", ["listed", "hashed"])
def test_states_and_clones_offer_the_same_and_go_on_alike(slots):
    env = CandidateActions(History(gymnasium.make("Test/Counting-v0"), turns=2), 4, slots)
    env.reset(seed=3, options={"task": NINE})
    env.step(env.slot_of("add 9"))
    state, twin = env.save_state(), env.clone()
    other = CandidateActions(History(gymnasium.make("Test/Counting-v0"), turns=2), 4, slots)
    other.load_state(state)
    assert other.candidates == env.candidates == twin.candidates
    for _ in range(4):
        slot = next(slot for slot, name in enumerate(env.candidates) if name != "done")
        steps = [played.step(slot) for played in (env, other, twin)]
        for observation, reward, terminated, truncated, info in steps:
            assert (observation, reward, terminated, truncated) == steps[0][:4]
            assert info.pop("action_mask").tolist() == env.action_masks().astype(int).tolist()
        assert steps[0][-1] == steps[1][-1] == steps[2][-1]


def test_a_state_of_another_wrapper_is_refused_and_changes_nothing():
    env = make(k=4)
    env.step(0)
    before = env.candidates
    states = {
        "other arguments": make(k=5).save_state(),
        "not a state": env.unwrapped.save_state(),
        "not what CandidateActions remembers": env.save_state().replace(
            b'{"turn":1}', b'{"turn":"x"}'
        ),
        "another environment": CandidateActions(reset_of(highest=30), 4, "listed").save_state(),
    }
    for message, state in states.items():
        with pytest.raises(InvalidState, match=message):
            env.load_state(state)
        assert env.candidates == before


def reset_of(**kwargs):
    env = gymnasium.make("Test/Counting-v0", **kwargs)
    env.reset(options={"task": NINE})
    return env


def test_a_spec_survives_json():
    env = make(k=np.int64(7), slots="hashed")
    made = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert isinstance(made, CandidateActions)
    made.reset(seed=1, options={"task": NINE})
    assert made.candidates == env.candidates


@pytest.mark.filterwarnings("ignore:.*is different from the unwrapped version")
def test_it_passes_the_check_of_gymnasium():
    for slots in ("listed", "hashed"):
        check_env(make(slots=slots), skip_render_check=True)


def test_masks_are_reachable_through_wrappers_of_gymnasium():
    env = RecordEpisodeStatistics(TimeLimit(make(k=8), 20))
    assert env.get_wrapper_attr("action_masks")().sum() == 5


@pytest.mark.parametrize(
    "make_vector",
    [SyncVectorEnv, functools.partial(AsyncVectorEnv, shared_memory=False, context="spawn")],
)
def test_masks_are_reachable_through_vectors_of_gymnasium(make_vector):
    env_fns = [functools.partial(gymnasium.make, make(k=8).spec)] * 2
    envs = make_vector(env_fns, autoreset_mode=AutoresetMode.SAME_STEP)
    _, infos = envs.reset(seed=0)
    assert infos["action_mask"].shape == (2, 8)
    *_, terminations, _, infos = envs.step(np.array([1, 4]))
    assert terminations.tolist() == [False, True]
    assert infos["action_mask"].sum(axis=1).tolist() == [6, 5]
    assert np.stack(envs.call("action_masks")).sum(axis=1).tolist() == [6, 5]
    envs.close()


def test_what_it_cannot_wrap_is_refused():
    with pytest.raises(TypeError, match=r"got TimeLimit; wrappers that change spaces"):
        CandidateActions(TimeLimit(CountingEnv(), 3), 8)
    with pytest.raises(TypeError, match="got CandidateActions"):
        CandidateActions(make(), 8)
    with pytest.raises(Unsupported, match="cannot list admissible commands"):
        CandidateActions(BareEnv(), 8)
    with pytest.raises(ValueError, match="k must be a whole number of at least 1, got 0"):
        CandidateActions(CountingEnv(), 0)
    with pytest.raises(UnknownName, match="unknown slots 'hash'; did you mean 'hashed'"):
        CandidateActions(CountingEnv(), 8, "hash")


def test_the_oracle_of_babyai_finds_its_commands_among_the_candidates():
    pytest.importorskip("minigrid")
    env = CandidateActions(gymnasium.make("AgentGym/BabyAI-v0", levels="single_room"), 512)
    for index in range(0, len(env.tasks), 400):
        observation, info = env.reset(options={"task": index})
        oracle = env.oracle()
        terminated = truncated = False
        while not (terminated or truncated):
            assert info["candidates_left_out"] == 0
            command = oracle.reply(observation, info)
            observation, _, terminated, truncated, info = env.step(env.slot_of(command))
        assert info["success"], env.task.id
