"""Episodes by hand."""

import pytest
from toys import make_task

from agentgym_envs.episodes import EndReason, Episode, Turn


@pytest.fixture
def make_episode():
    """An episode of so many turns, solved or not."""

    def make(number, turns, solved=False, *, horizon=8, member=0, score=None, **fields):
        reason = EndReason.SUCCESS if solved else EndReason.HORIZON
        final = float(solved) if score is None else score
        episode = Episode(
            task=make_task(number),
            seed=0,
            horizon=horizon,
            instructions="",
            first_observation="",
            member=member,
            end_reason=reason,
            success=solved,
            turns=[Turn("go", "gone", 0.0, final, action_valid=True) for _ in range(turns)],
        )
        for name, value in fields.items():
            setattr(episode, name, value)
        return episode

    return make
