"""PPO in one file, in the manner of CleanRL, on ids of words: docs/examples/masked_ppo_torch.py

Vectors and autoreset are Gymnasium's own. Which commands can be done comes in
``infos["action_mask"]``, and with SAME_STEP the last info of an episode in ``infos["final_info"]``.
"""

import gymnasium
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from torch import nn
from torch.distributions import Categorical

from agentgym_envs.wrappers import CandidateActions, TokenIds
from agentgym_envs.wrappers.features import SEPARATOR

NUM_ENVS, NUM_STEPS, NUM_SLOTS, NUM_IDS, WIDTH = 8, 128, 512, 2048, 64
EPOCHS, BATCH, GAMMA, GAE_LAMBDA, CLIP, ENTROPY = 10, 256, 0.9, 0.95, 0.2, 0.01


def make() -> gymnasium.Env:
    env = gymnasium.make("AgentGym/BabyAI-v0", levels="GoToLocal", horizon=6)
    return TokenIds(CandidateActions(env, NUM_SLOTS), length=128, vocabulary_size=NUM_IDS)


class Agent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(NUM_IDS, WIDTH, padding_idx=0)
        self.actor, self.critic = nn.Linear(2 * WIDTH, NUM_SLOTS), nn.Linear(2 * WIDTH, 1)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        is_goal = ((ids == SEPARATOR).cumsum(1) == 0).unsqueeze(-1)
        words = self.words(ids)
        bags = torch.cat([(words * is_goal).sum(1), (words * ~is_goal).mean(1)], dim=1)
        hidden = torch.tanh(bags)
        logits = self.actor(hidden).masked_fill(~mask, -1e9)
        return Categorical(logits=logits), self.critic(hidden).squeeze(-1)


def advantages(rewards: torch.Tensor, values: torch.Tensor, dones: torch.Tensor) -> torch.Tensor:
    """Generalized advantages (steps, envs); `values` has a row more."""
    gains, gain = torch.zeros_like(rewards), torch.zeros(rewards.shape[1])
    for step in reversed(range(len(rewards))):
        goes_on = 1 - dones[step]
        error = rewards[step] + GAMMA * goes_on * values[step + 1] - values[step]
        gains[step] = gain = error + GAMMA * GAE_LAMBDA * goes_on * gain
    return gains


def update(agent: Agent, optimizer: torch.optim.Optimizer, batch: list[torch.Tensor]) -> None:
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(batch[0])).split(BATCH):
            ids, mask, actions, old_logprobs, gains, returns = (column[rows] for column in batch)
            policy, values = agent(ids, mask)
            ratio = (policy.log_prob(actions) - old_logprobs).exp()
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
            gained = torch.min(ratio * gains, ratio.clamp(1 - CLIP, 1 + CLIP) * gains).mean()
            loss = 0.5 * (values - returns).square().mean() - gained
            optimizer.zero_grad()
            (loss - ENTROPY * policy.entropy().mean()).backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()


def train(num_iterations: int = 40, seed: int = 1) -> list[float]:
    """Share of training episodes solved in each iteration."""
    torch.manual_seed(seed)
    envs = SyncVectorEnv([make] * NUM_ENVS, autoreset_mode=AutoresetMode.SAME_STEP)
    agent = Agent()
    optimizer = torch.optim.Adam(agent.parameters(), lr=1e-3)
    ids, infos = envs.reset(seed=seed)
    shares = []
    for _ in range(num_iterations):
        columns, solved = [], []
        for _ in range(NUM_STEPS):
            state = torch.as_tensor(ids), torch.as_tensor(infos["action_mask"], dtype=torch.bool)
            with torch.no_grad():
                policy, values = agent(*state)
            actions = policy.sample()
            ids, rewards, terminations, truncations, infos = envs.step(actions.numpy())
            dones = terminations | truncations
            if dones.any():
                solved += infos["final_info"]["success"][dones].tolist()
            numbers = [torch.as_tensor(column, dtype=torch.float32) for column in (rewards, dones)]
            columns.append([*state, actions, policy.log_prob(actions), values, *numbers])
        with torch.no_grad():
            state = torch.as_tensor(ids), torch.as_tensor(infos["action_mask"], dtype=torch.bool)
            last = agent(*state)[1]
        *before, values, rewards, dones = map(torch.stack, zip(*columns, strict=True))
        gains = advantages(rewards, torch.cat([values, last[None]]), dones)
        update(agent, optimizer, [x.flatten(0, 1) for x in (*before, gains, gains + values)])
        shares.append(float(np.mean(solved)))
    envs.close()
    return shares


if __name__ == "__main__":
    for iteration, share in enumerate(train()):
        print(f"iteration {iteration}: {share:.3f} of the training episodes solved")
