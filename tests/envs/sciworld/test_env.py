import dataclasses
import json

import gymnasium
import pytest

from agentgym_envs.errors import InvalidState, InvalidTask, UnknownName
from agentgym_envs.policies import run_episode
from agentgym_envs.sciworld.experiments import NAMES
from agentgym_envs.sciworld.tasks import certified_task, certified_tasks, digest_of, manifest
from agentgym_envs.tasks import SPLITS

BOIL = "sciworld/train/boil/0"


def played(env, *replies, task=BOIL, **options):
    env.reset(options={"task": task, **options})
    return [env.step(reply) for reply in replies][-1]


def test_the_first_observation_is_the_task_and_the_room(make):
    env = make()
    observation, info = env.reset(options={"task": BOIL})
    assert observation.startswith("Your task is to boil water.")
    assert "This room is called the hallway." in observation
    assert info["score"] == 0.0


@pytest.mark.parametrize("compat", [None, "agentgym"])
def test_the_goal_is_the_task_in_words_after_reset_load_and_clone(make, compat):
    env, other = make(compat=compat, render_mode="ansi"), make(compat=compat, render_mode="ansi")
    with pytest.raises(gymnasium.error.ResetNeeded):
        _ = env.goal
    first, _ = env.reset(options={"task": BOIL})
    goal = env.goal
    assert first.startswith(f"{goal}\n")
    assert digest_of(goal) == env.task.payload["stated"]
    assert env.render().startswith(goal)
    other.reset(options={"task": "sciworld/train/melt/1"})
    assert other.goal != goal
    other.load_state(env.save_state())
    assert other.goal == goal
    twin = env.clone()
    assert twin.goal == goal
    twin.close()


def test_the_gold_actions_succeed_at_score_one_and_rewards_add_up(make):
    episode = run_episode(make(), task=BOIL)
    assert episode.end_reason == "success"
    assert sum(turn.reward for turn in episode.turns) == pytest.approx(1.0)
    assert [turn.score for turn in episode.turns] == sorted(turn.score for turn in episode.turns)
    assert len(episode.turns) == 36


def test_a_wrong_focus_fails_with_the_reason_in_words(make):
    env = make(info_keys=["failure"])
    observation, reward, terminated, truncated, info = played(env, "focus on agent")
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["end_reason"] == "failure"
    assert not info["success"]
    assert info["failure"] == (
        "The task has failed: you focused on agent, which is not what the task asks you to focus "
        "on now."
    )
    assert observation.endswith(info["failure"])


def test_failing_takes_back_what_was_gained_unless_the_reward_says_otherwise(make):
    gold = run_episode(make(), task=BOIL).turns
    first_gain = next(number for number, turn in enumerate(gold) if turn.score > 0)
    replies = [turn.reply for turn in gold[: first_gain + 1]]
    replies += ["focus on agent"]
    _, reward, terminated, _, info = played(make(), *replies)
    assert terminated
    assert info["score"] == 0.0
    assert reward == -gold[first_gain].score
    _, kept, *_ = played(make(reward="no_loss"), *replies)
    assert kept == 0.0


def test_goals_that_are_reached_again_after_reset_task_are_paid_once(make):
    env = make(reward="no_loss", experiments=["find-non-living-thing"])
    env.reset(options={"task": "sciworld/train/find-non-living-thing/0", "horizon": 30})
    for reply in ("open door to kitchen", "go to kitchen"):
        env.step(reply)
    scores, rewards = [], []
    for reply in 3 * ("focus on painting", "reset task"):
        _, reward, *_, info = env.step(reply)
        scores.append(info["score"])
        rewards.append(reward)
    assert scores[0] > scores[1]
    assert sum(rewards) == pytest.approx(rewards[0] + scores[-1] - scores[0])


@pytest.mark.parametrize("lines", [["pick up dragon"], ["99"], "0", {"look around": 1}])
def test_a_world_that_was_not_saved_is_refused_and_changes_nothing(make, lines):
    env = make()
    played(env, "open door to kitchen")
    before = env.save_state()
    state = json.loads(before)
    state["world"]["lines"] = lines
    state["generator"]["state"]["state"] += 1
    with pytest.raises(InvalidState, match="not a world of sciworld"):
        env.load_state(json.dumps(state).encode())
    assert env.save_state() == before


def test_experiments_that_cannot_be_done_are_left_out_or_refused(make):
    with pytest.raises(InvalidTask, match="power-component needs electrical actions"):
        make(simplifications=["noElectricalAction"], experiments=["boil", "power-component"])
    left = make(simplifications=["noElectricalAction"]).tasks.categories()
    assert "boil" in left
    assert not {"power-component", "test-conductivity"} & set(left)
    assert "power-component" in make(simplifications=["easy"]).tasks.categories()


def test_a_choice_of_no_experiment_is_refused(make):
    with pytest.raises(ValueError, match="experiments names none; leave it out"):
        make(experiments=[])
    env = make(experiments=["grow-plant"], compat="agentgym")
    with pytest.raises(InvalidTask, match="AgentGym's list has no task of grow-plant"):
        env.reset(seed=0)


def test_a_variation_is_a_whole_number(make):
    task = dataclasses.replace(
        certified_task(BOIL), payload={"experiment": "boil", "variation": True}
    )
    with pytest.raises(InvalidTask, match="needs a payload"):
        make().reset(options={"task": task})


def test_a_question_is_answered_by_a_number(make):
    env = make(info_keys=["admissible", "moves"])
    observation, *_, info = played(env, "open door")
    assert "Please enter the number" in observation
    assert info["admissible"] == ["0", "1", "2", "3", "4", "5"]
    observation, *_, info = env.step("6")
    assert observation == "6 stands for no action; answer with a number from 0 to 5."
    assert not info["action_valid"]
    assert info["moves"] == 0
    observation, *_, info = env.step("choose 1")
    assert (observation, info["moves"]) == ("The door is now open.", 1)
    observation, *_ = env.step("1")
    assert observation == "1 answers no question: the simulator has asked nothing."


def test_any_other_command_drops_the_question(make):
    env = make()
    played(env, "open door")
    assert env.step("open door to kitchen")[0] == "The door is now open."


def test_a_name_that_is_not_here_changes_nothing_and_costs_a_turn(make):
    env = make(info_keys=["state_key", "moves"])
    _, before = env.reset(options={"task": BOIL})
    observation, *_, info = env.step("pick up dragon")
    assert observation.startswith('No known action matches "pick up dragon".')
    assert not info["action_valid"]
    assert (info["turn"], info["moves"]) == (1, 0)
    assert info["state_key"] == before["state_key"]


@pytest.mark.parametrize("reply", ["", "\n\n", "x" * 10_000, "open " + "a to " * 390, "\x00\ud800"])
def test_garbage_is_answered_and_costs_a_turn(make, reply):
    observation, reward, *_, info = played(make(), reply)
    assert observation
    assert reward == 0.0
    assert not info["action_valid"]
    assert info["turn"] == 1


def test_extras_come_on_request_only(make):
    env = make(info_keys=["look", "inventory", "goal_progress", "object_tree", "moves"])
    *_, info = played(env, "wait1")
    assert info["look"].startswith("This room is called the hallway.")
    assert info["inventory"].startswith("In your inventory, you see:")
    assert "focus on substance" in info["goal_progress"]
    assert info["object_tree"]["name"] == "universe"
    assert "look" not in played(make(), "wait1")[4]


def test_asking_for_extras_does_not_change_what_follows(make):
    keys = ["admissible", "look", "inventory", "goal_progress", "object_tree", "state_key"]
    task = "sciworld/train/grow-fruit/0"
    plain, asking = make(), make(info_keys=keys)
    replies = [turn.reply for turn in run_episode(plain, task=task).turns][:40]
    plain.reset(options={"task": task})
    asking.reset(options={"task": task})
    for reply in replies:
        assert asking.step(reply)[:4] == plain.step(reply)[:4]


def test_simplifications_belong_to_one_environment(make):
    easy, plain = make(simplifications=["easy"]), make()
    for env in (easy, plain):
        env.reset(options={"task": BOIL})
    assert easy.step("teleport to kitchen")[0] == "You teleport to the kitchen."
    assert "is not a command" in plain.step("teleport to kitchen")[0]
    assert "(that is closed)" in plain.step("look around")[0]
    easy.reset(options={"task": BOIL})
    assert "(that is closed)" not in easy.step("look around")[0]


def test_the_oracle_gives_up_past_its_way(make):
    from agentgym_envs.errors import NoPlan

    env = make()
    env.reset(options={"task": BOIL})
    oracle = env.oracle()
    env.step("look around")
    assert oracle.reply("", {}).startswith("open door to ")
    env.step("wait")
    with pytest.raises(NoPlan, match="not past 'wait'"):
        oracle.reply("", {})


def test_tasks_that_are_not_there_are_refused_with_the_valid_range(make):
    env = make()
    with pytest.raises(InvalidTask, match="boil has the variations 0 to 29, train those from 0"):
        env.reset(options={"task": "sciworld/train/boil/30"})
    with pytest.raises(UnknownName, match="did you mean 'sciworld/train/boil/3'"):
        env.reset(options={"task": "sciworld/test/boil/3"})
    with pytest.raises(InvalidTask, match="'sciworld/train/freeze/11' is not certified: "):
        env.reset(options={"task": "sciworld/train/freeze/11"})
    with pytest.raises(UnknownName, match="did you mean 'boil'"):
        env.reset(options={"task": "sciworld/train/boill/3"})
    with pytest.raises(UnknownName, match="unknown experiment 'melting'; did you mean 'melt'"):
        make(experiments=["melting"])


def test_items_of_agentgym_are_tasks(make):
    env = make()
    env.reset(options={"task": "sciworld_31"})
    assert env.task.id == "sciworld/train/melt/1"


def test_all_experiments_are_in_every_split_and_the_manifest_counts_them():
    for split in SPLITS:
        tasks = certified_tasks(split)
        assert set(tasks.categories()) == set(NAMES)
        assert dict(manifest().splits[split].categories) == tasks.categories()
        assert tasks.digest() == manifest().splits[split].digest
