"""Functions that tests name by import path."""


def length_cost(turn):
    """The environment's reward, less a tenth for every character of the reply."""
    return turn.reward - 0.1 * len(turn.reply)


def seen(turn):
    """A number made of every field, so that a test sees all of them."""
    assert turn.info["turn"] == turn.turn
    assert turn.observation.startswith("You")
    return turn.score - turn.score_before + 100 * turn.turn + 10 * turn.action_valid + turn.horizon


def nothing(turn):
    return None


def turns_played(info):
    """A potential."""
    return info["turn"] / 10


def letters_a(text):
    """Counts tokens."""
    return text.count("a")


def half(text):
    return 0.5


NUMBER = 3
