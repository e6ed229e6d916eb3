"""stable-baselines3, sb3-contrib and the examples, unchanged, on text worlds."""

import functools
import importlib.util
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.wrappers import (
    ByteIds,
    CandidateActions,
    CandidateFeatures,
    HashedText,
    TokenIds,
)

pytest.importorskip("minigrid")
torch = pytest.importorskip("torch")
sb3 = pytest.importorskip("stable_baselines3")
sb3_contrib = pytest.importorskip("sb3_contrib")
env_checker = pytest.importorskip("stable_baselines3.common.env_checker")
env_util = pytest.importorskip("stable_baselines3.common.env_util")
vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
maskable = pytest.importorskip("sb3_contrib.common.maskable.utils")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
IDS = ("AgentGym/BabyAI-v0", "AgentGym/TextCraft-v0")
WRAPPERS = (
    HashedText,
    functools.partial(HashedText, dimension=16, normalize=False),
    TokenIds,
    ByteIds,
    CandidateFeatures,
)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def spec_of(env_id, wrapper=HashedText, slots="hashed"):
    """The spec of numeric environments, which worker processes make by themselves."""
    return wrapper(CandidateActions(gymnasium.make(env_id, horizon=8), 64, slots)).spec


def parameters_of(model):
    return torch.cat([values.flatten() for values in model.policy.state_dict().values()])


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_the_check_of_stable_baselines3_passes(env_id, wrapper):
    env_checker.check_env(gymnasium.make(spec_of(env_id, wrapper)))


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize("algorithm", ["MaskablePPO", "PPO", "DQN"])
def test_algorithms_learn_in_it(env_id, algorithm):
    settings = {"n_steps": 64, "batch_size": 64, "n_epochs": 2}
    if algorithm == "DQN":
        settings = {"learning_starts": 50, "buffer_size": 1000, "train_freq": 16}
    make = getattr(sb3_contrib if algorithm == "MaskablePPO" else sb3, algorithm)
    envs = env_util.make_vec_env(lambda: gymnasium.make(spec_of(env_id)), 2)
    model = make("MlpPolicy", envs, seed=1, **settings)
    before = parameters_of(model)
    model.learn(256)
    after = parameters_of(model)
    assert torch.isfinite(after).all()
    assert not torch.equal(before, after)
    assert len(model.ep_info_buffer) > 5


def test_masks_reach_sb3_contrib_through_both_of_its_vectors():
    make = functools.partial(gymnasium.make, spec_of(IDS[0], TokenIds, "listed"))
    masks = []
    for envs in (
        vec_env.DummyVecEnv([make] * 2),
        vec_env.SubprocVecEnv([make] * 2, start_method="spawn"),
    ):
        envs.seed(3)
        envs.reset()
        assert maskable.is_masking_supported(envs)
        actions = maskable.get_action_masks(envs).argmax(axis=1)
        observations, *_ = envs.step(actions)
        assert observations.shape == (2, 128)
        masks.append(maskable.get_action_masks(envs))
        envs.close()
    np.testing.assert_array_equal(*masks)
    assert masks[0].dtype == bool
    assert 0 < masks[0].sum() < masks[0].size


def test_a_masked_policy_never_wastes_a_turn():
    env = gymnasium.make(spec_of(IDS[0]))
    model = sb3_contrib.MaskablePPO("MlpPolicy", env, seed=1)
    for seed in range(5):
        observation, info = env.reset(seed=seed)
        while not info["end_reason"]:
            masks = env.get_wrapper_attr("action_masks")()
            action, _ = model.predict(observation, action_masks=masks)
            observation, *_, info = env.step(action)
            assert info["action_valid"]


def test_the_example_has_at_most_forty_lines():
    assert len((EXAMPLES / "maskable_ppo.py").read_text().splitlines()) <= 40


@pytest.mark.parametrize("world", ["babyai", "textcraft"])
def test_the_example_leaves_no_command_out(world):
    for split in ("train", "test"):
        env = getattr(example("maskable_ppo"), world)(split)
        rng = np.random.default_rng(0)
        for task in range(0, len(env.tasks), 5):
            _, info = env.reset(options={"task": task})
            while not info["end_reason"]:
                assert info["candidates_left_out"] == 0
                *_, info = env.step(rng.choice(np.flatnonzero(env.action_masks())))


@pytest.mark.slow
@pytest.mark.parametrize("world", ["babyai", "textcraft"])
def test_the_example_solves_more_held_out_tasks_after_training(world):
    maskable_ppo = example("maskable_ppo")
    make = getattr(maskable_ppo, world)
    envs = env_util.make_vec_env(lambda: make("train"), 8)
    model = sb3_contrib.MaskablePPO("MlpPolicy", envs, **maskable_ppo.SETTINGS)
    held_out = make("test")

    def num_solved():
        return sum(maskable_ppo.is_solved(model, held_out, number) for number in range(200))

    before = num_solved()
    model.learn(20_480)
    assert num_solved() > before + 40


def test_the_single_file_example_learns():
    shares = example("masked_ppo_torch").train(num_iterations=8)
    assert np.mean(shares[6:]) > shares[0] + 0.1


def test_a_spec_with_a_task_list_survives_json():
    env = example("maskable_ppo").textcraft("test")
    made = gymnasium.make(EnvSpec.from_json(env.spec.to_json()))
    assert made.tasks.ids == env.tasks.ids
    assert isinstance(made, CandidateFeatures)
