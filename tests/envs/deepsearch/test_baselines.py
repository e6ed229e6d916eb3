"""Players that guess: what each says, by hand."""

import pytest

from agentgym_envs.deepsearch.baselines import MajorityGuess, OneSearchGuess, QuestionGuess
from agentgym_envs.policies import run_episode
from agentgym_envs.tasks import Task

TRAINING = [
    ("s", "Which river is in Peru?", "Ucayali"),
    ("s", "Which river is in Chile?", "Loa"),
    ("s", "Which lake is in Chile?", "Loa"),
    ("t", "Is Peru larger than Chile?", "yes"),
    ("t", "Is Lima larger than Loa?", "no"),
    ("t", "Is Lima older than Loa?", "no"),
]


def task(number, name, question, answer):
    return Task(
        "deepsearch",
        f"deepsearch/train/{name}/{number}",
        "train",
        question,
        name,
        None,
        6,
        payload={"answers": [answer], "hops": 1},
    )


@pytest.fixture(scope="module")
def training():
    return [task(number, *row) for number, row in enumerate(TRAINING)]


def test_the_majority_is_that_of_the_set(training):
    player = MajorityGuess(training)
    for name, answer in (("s", "Loa"), ("t", "no"), ("unknown", "yes")):
        said = player.reply("Question: x", {"task_id": f"deepsearch/test/{name}/0"})
        assert said == f"answer {answer}"


def test_the_question_alone_is_answered_as_the_nearest_were(training):
    player = QuestionGuess(training)
    assert player.guess("Which lake is in Chile?") == "Loa"
    assert player.guess("words that nobody asked with") in {"Loa", "no"}
    assert player.reply("Question: Is Lima older?", {}).startswith("answer ")


def test_options_in_the_question_are_guessed_by_their_place():
    rows = [
        ("Which is longer, Sarn or Ulve?", "Ulve"),
        ("Which is longer, Lenna or Brack?", "Brack"),
        ("Which is longer, Withy or Sarn?", "Withy"),
    ]
    training = [task(number, "s", *row) for number, row in enumerate(rows)]
    assert QuestionGuess(training).guess("Which is longer, Loa or Ucayali?") == "Ucayali"


def test_one_search_names_what_is_new_in_the_likeliest_sentence():
    player = OneSearchGuess(render=lambda command: f"<{command}>")
    player.start("")
    assert player.reply("Question: Who founded Tirmouth?", {}) == "<search Who founded Tirmouth?>"
    shown = (
        "<information>\n"
        "Doc 1 (Title: Tirmouth: History) It is by the Sarn. Tirmouth was founded by Queen Oda.\n"
        "Doc 2 (Title: Sarn: Water) The Sarn passes Tirmouth, which Abel Crane founded in 1204.\n"
        "</information>"
    )
    assert player.reply(shown, {}) == "<answer Queen Oda>"
    player.start("")
    player.reply("Question: Is it so?", {})
    assert player.reply(shown, {}) == "<answer yes>"
    player.start("")
    player.reply("Question: What?", {})
    assert player.reply("<information>\nNothing was found.\n</information>", {}) == "<answer yes>"


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_they_play_whole_episodes(make, compat):
    env = make(compat=compat, split="test")
    training = make(split="train").tasks
    for player in (
        MajorityGuess(training, env.render_command),
        QuestionGuess(training, env.render_command),
        OneSearchGuess(env.render_command),
    ):
        for asked in env.tasks:
            episode = run_episode(env, player, task=asked)
            assert episode.end_reason
            assert all(turn.action_valid for turn in episode.turns)
