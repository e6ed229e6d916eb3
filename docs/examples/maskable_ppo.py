"""MaskablePPO in text worlds: python docs/examples/maskable_ppo.py [babyai|textcraft]"""

import sys

import gymnasium
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

from agentgym_envs.wrappers import CandidateActions, CandidateFeatures, HashedText, History

SETTINGS = {"n_steps": 128, "batch_size": 256, "learning_rate": 1e-3, "gamma": 0.9, "seed": 1}


def babyai(split: str) -> gymnasium.Env:
    env = gymnasium.make("AgentGym/BabyAI-v0", levels="GoToLocal", split=split, horizon=6)
    return HashedText(CandidateActions(env, k=512))


def textcraft(split: str) -> gymnasium.Env:
    tasks = gymnasium.make("AgentGym/TextCraft-v0", split=split).tasks
    easy = [task.id for task in tasks if task.category == "depth 1"]
    env = gymnasium.make("AgentGym/TextCraft-v0", split=split, tasks=easy, horizon=8)
    return CandidateFeatures(CandidateActions(History(env, turns=8), k=32, slots="listed"))


def is_solved(model: MaskablePPO, env: gymnasium.Env, number: int) -> bool:
    observation, info = env.reset(seed=number, options={"task": number % len(env.tasks)})
    while not info["end_reason"]:
        action, _ = model.predict(observation, action_masks=env.action_masks())
        observation, *_, info = env.step(action)
    return info["success"]


if __name__ == "__main__":
    make = textcraft if "textcraft" in sys.argv else babyai
    model = MaskablePPO("MlpPolicy", make_vec_env(lambda: make("train"), 8), **SETTINGS)
    held_out = make("test")
    for _ in range(6):
        print(model.num_timesteps, sum(is_solved(model, held_out, n) for n in range(200)) / 200)
        model.learn(8192, reset_num_timesteps=False)
