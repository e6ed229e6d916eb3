"""SciWorld: experiments of elementary school science in a simulated house; see `SciWorldEnv`."""
