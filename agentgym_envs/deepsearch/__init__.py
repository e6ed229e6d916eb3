"""Deep Search: questions to answer by searching a corpus of passages; see `DeepSearchEnv`."""
