"""BabyAI: grid worlds with a goal in a small language; registered as ``AgentGym/BabyAI-v0``."""
