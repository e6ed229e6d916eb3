"""Which tasks and which horizon a training step uses."""
