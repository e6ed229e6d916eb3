import gymnasium
import pytest
from counting import BareEnv, CountingEnv, FaultyEnv

from agentgym_envs.episodes import EndReason, Episode, read_episodes, write_episodes
from agentgym_envs.errors import EnvFault, Unsupported
from agentgym_envs.policies import (
    HumanPolicy,
    RandomPolicy,
    ScriptedPolicy,
    package_versions,
    run_episode,
)
from agentgym_envs.wrappers import TextWrapper

NINE = "counting/train/9"


def test_the_oracle_plays_by_default_and_the_record_says_everything():
    env = gymnasium.make("Test/Counting-v0", action_format="react")
    episode = run_episode(env, task=NINE, seed=3)
    assert (episode.end_reason, episode.success, episode.return_) == (EndReason.SUCCESS, True, 1.0)
    assert [turn.reply.partition("Action:\n")[2] for turn in episode.turns] == ["add 9", "done"]
    assert [turn.score for turn in episode.turns] == [0.5, 1.0]
    assert episode.task == env.task
    assert (episode.seed, episode.horizon) == (3, 10)
    assert (episode.env_id, episode.action_format) == ("Test/Counting-v0", "react")
    assert episode.instructions == env.instructions
    assert episode.first_observation.startswith("Make the counter show 9")
    assert episode.versions == package_versions()
    assert episode.versions["gymnasium"] == gymnasium.__version__


def test_a_record_can_be_played_again(tmp_path):
    env = CountingEnv(info_keys=("admissible",))
    first = run_episode(env, RandomPolicy(seed=1), seed=8)
    write_episodes(tmp_path / "one.jsonl", [first])
    (record,) = read_episodes(tmp_path / "one.jsonl")
    replies = ScriptedPolicy([turn.reply for turn in record.turns])
    assert run_episode(env, replies, task=record.task, seed=record.seed) == first


def test_a_horizon_ends_the_episode():
    episode = run_episode(CountingEnv(), ScriptedPolicy(["what?"]), horizon=3)
    assert len(episode.turns) == episode.horizon == 3
    assert (episode.end_reason, episode.success) == (EndReason.HORIZON, False)


def test_an_outer_time_limit_is_a_horizon():
    env = gymnasium.wrappers.TimeLimit(CountingEnv(), max_episode_steps=2)
    episode = run_episode(env, ScriptedPolicy(["what?"]))
    assert (len(episode.turns), episode.end_reason) == (2, EndReason.HORIZON)


def test_wrapped_environments_are_played_too():
    assert run_episode(TextWrapper(CountingEnv()), task=0).success


def test_surrogates_in_replies_are_recorded_as_the_world_saw_them():
    episode = run_episode(CountingEnv(), ScriptedPolicy(["\ud800"]), horizon=1)
    assert episode.turns[0].reply == "\ufffd"


def test_random_play_needs_and_takes_admissible_commands():
    env = CountingEnv(info_keys=("admissible",))
    episode = run_episode(env, RandomPolicy(seed=4), seed=4)
    assert all(turn.action_valid for turn in episode.turns)
    assert run_episode(env, RandomPolicy(seed=4), seed=4) == episode
    with pytest.raises(Unsupported, match=r'info_keys=\("admissible",\)'):
        run_episode(CountingEnv(), RandomPolicy())


def test_random_play_can_write_in_any_action_format():
    env = CountingEnv(info_keys=("admissible",), action_format="react")
    episode = run_episode(env, RandomPolicy(seed=4, render=env.render_command), seed=4)
    assert all(turn.action_valid for turn in episode.turns)


def test_random_play_has_something_to_say_when_nothing_is_admissible():
    assert RandomPolicy().reply("", {"admissible": []}) == ""


def test_a_script_repeats_its_last_reply_and_begins_anew_each_episode():
    policy = ScriptedPolicy(["add 1", "what?"])
    for _ in range(2):
        episode = run_episode(CountingEnv(), policy, horizon=3)
        assert [turn.reply for turn in episode.turns] == ["add 1", "what?", "what?"]
    with pytest.raises(ValueError, match="at least one reply"):
        ScriptedPolicy([])


def test_a_person_sees_instructions_and_observations():
    replies = iter(["add 9", "done"])
    seen = []
    env = CountingEnv()
    episode = run_episode(env, HumanPolicy(lambda prompt: next(replies), seen.append), task=NINE)
    assert episode.success
    assert seen[0] == env.instructions
    assert seen[2] == "\nYou add 9. The counter shows 9."


def test_faults_are_not_hidden():
    with pytest.raises(EnvFault):
        run_episode(FaultyEnv(), ScriptedPolicy(["break"]))


def test_a_family_without_oracle_needs_a_policy():
    with pytest.raises(Unsupported):
        run_episode(BareEnv(), task=0)
    assert isinstance(run_episode(BareEnv(), ScriptedPolicy(["done"]), task=0), Episode)


def test_what_is_no_text_environment_cannot_be_played():
    with pytest.raises(TypeError, match=r"plays a TextEnv or a wrapper around one, got .*CartPole"):
        run_episode(gymnasium.make("CartPole-v1"))


def test_a_policy_that_is_false_plays_all_the_same():
    class Empty(ScriptedPolicy):
        def __len__(self):
            return 0

    assert run_episode(CountingEnv(), Empty(["what?"]), horizon=1).turns[0].reply == "what?"


def test_the_rules_and_the_oracle_are_those_of_the_outermost_wrapper():
    class Polite(TextWrapper):
        @property
        def instructions(self):
            return f"Please. {self.inner.instructions}"

        def oracle(self):
            return ScriptedPolicy(["please"])

    episode = run_episode(gymnasium.wrappers.TimeLimit(Polite(CountingEnv()), 2), task=NINE)
    assert episode.instructions.startswith("Please. You have a counter.")
    assert [turn.reply for turn in episode.turns] == ["please", "please"]
