"""A script as people write them: no guard around what runs, and a class of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from counting import CountingEnv

from agentgym_envs.actions import verb
from agentgym_envs.vector import TextVectorEnv


@verb("hum")
def hum(world):
    """Hum a tune.

    Examples:
        hum
    """
    return "You hum."


class Humming(CountingEnv):
    """A counter to hum at."""

    verbs = (*CountingEnv.verbs, hum)


write = sys.stdout.write
write("started\n")
for workers, num_envs in (("forkserver", 2), ("spawn", 1)):
    env = TextVectorEnv(Humming, num_envs, workers=workers)
    env.reset()
    observations = env.step(["hum"] * num_envs)[0]
    write(f"{workers} {tuple(text.partition(' The')[0] for text in observations)}\n")
    env.close()
