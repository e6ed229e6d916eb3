"""A thin trainer for language agents over `agentgym_envs`."""
