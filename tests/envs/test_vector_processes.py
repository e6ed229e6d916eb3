"""Process workers: they give what in-line workers give, and survive what those do not."""

import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from counting import CountingEnv
from gymnasium.error import ResetNeeded
from perilous import Hasty, PerilousEnv, SecretInfo
from toys import receive

from agentgym_envs.errors import UnknownName, WorkerFault
from agentgym_envs.vector import FAULT_OBSERVATION, TextVectorEnv
from agentgym_envs.wrappers import TextWrapper

PROCESSES = ("forkserver", "spawn")
THREE, SIX, NINE = (f"counting/train/{number}" for number in (3, 6, 9))


@pytest.fixture
def perilous(make_vector):
    """Perilous environments in processes."""

    def make(num_envs=3, *, workers="forkserver", step_timeout_s=20.0, **kwargs):
        return make_vector(
            PerilousEnv, num_envs, workers=workers, step_timeout_s=step_timeout_s, **kwargs
        )

    return make


@pytest.fixture(scope="module")
def lasting():
    """One for all tests that need nothing special; whatever they break is replaced."""
    env = TextVectorEnv(PerilousEnv, 3, workers="forkserver", step_timeout_s=20.0)
    yield env
    env.close()


def transcript(env):
    """Everything that episodes with tasks, seeds and horizons of their own give."""
    entries = []
    env.send_reset(range(4), [THREE, None, NINE, 1], [7, 8, 3, 9], [2, None, 5, None])
    for replies in (["roll"] * 4, ["add 1", "what?", "roll", "\ud800"], ["done"] * 4):
        results = receive(env, 4)
        entries.append(sorted(results.items()))
        running = [i for i, result in results.items() if not result.terminated | result.truncated]
        env.send(sorted(running), [replies[index] for index in sorted(running)])
        if len(running) < 4:
            entries.append(sorted(receive(env, len(running)).items()))
            return entries
    return entries


# ---------------------------------------------------------------------------------- the same as...


@pytest.mark.parametrize("workers", PROCESSES)
def test_processes_give_what_in_line_workers_give(make_vector, workers):
    keys = ("admissible", "state_key", "labels")
    make = lambda kind: make_vector(  # noqa: E731
        "Test/Counting-v0", 4, workers=kind, info_keys=keys, env_wrappers=[TextWrapper]
    )
    found, expected = transcript(make(workers)), transcript(make("inline"))
    assert found == expected
    assert len(expected) == 4
    assert all(type(reward) is float for entry in found for _, (_, reward, *_) in entry)


def test_environments_come_from_functions_of_all_kinds(make_vector):
    class Local(CountingEnv):
        def _begin(self, task):
            return super()._begin(task) + " It is local."

    env = make_vector(
        lambda **kwargs: Local(highest=30, **kwargs), 2, workers="forkserver", split="dev"
    )
    assert all(text.endswith("It is local.") for text in env.reset()[0])
    assert env.get_attr("highest") == (30, 30)
    assert env.call("render_command", "plus 3") == ("add 3", "add 3")


def test_a_script_without_a_guard_runs_once_and_its_classes_are_known_to_the_workers():
    script = Path(__file__).with_name("unguarded.py")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "started\nforkserver ('You hum.', 'You hum.')\nspawn ('You hum.',)\n"


def test_states_and_tasks_cross_the_border(lasting):
    env = lasting
    task = CountingEnv().tasks[1]
    env.reset(options={"task": task})
    assert [each.id for each in env.get_attr("task")] == [SIX] * 3
    state = env.call("save_state")[0]
    assert isinstance(state, bytes)
    env.step(["add 3", "add 1", "add 1"])
    env.call("load_state", state)
    observations, *_ = env.step(["add 1"] * 3)
    assert observations == ("You add 1. The counter shows 1.",) * 3


def test_long_texts_come_through_whole_both_ways(perilous):
    env = perilous(2, action_format="react")
    env.reset()
    thought = "\u2603" * 900_000
    env.send([0, 1], [f"Thought: {thought}\nAction: add 1", "Thought: no\nAction: read 60 pages"])
    results = receive(env, 2)
    assert results[0].observation == "You add 1. The counter shows 1."
    assert results[1].observation.startswith("\u2603 page " * 60_000)
    reply = f"Thought: {thought}\nAction: read 60 pages"
    observations, *_ = env.step([reply, reply])
    assert all(text.startswith("\u2603 page " * 60_000) for text in observations)


# ----------------------------------------------------------------------------------------- perils


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("die", "the worker process was killed by SIGKILL; the worker was replaced"),
        ("signal 40", "the worker process was killed by signal 40; the worker was replaced"),
        ("mumble", "Mumbled: "),
        ("exit", "the worker process exited with code 3; the worker was replaced"),
        ("leave", "interrupted by SystemExit"),
        ("babble", "the worker process answered nonsense: what came is no message; the worker was"),
        ("stumble", "OddFault: fell 3 m into a pit"),
        ("ruin", "the task is gone from the shelf"),
    ],
)
def test_a_peril_ends_one_episode_and_no_other(lasting, command, fault):
    env = lasting
    env.send_reset(range(3), tasks=[NINE] * 3)
    receive(env, 3)
    env.send(range(3), ["add 9"] * 3)
    receive(env, 3)
    env.send(range(3), ["done", command, "add 1"])
    results = receive(env, 3)
    assert results[0].info["success"]
    assert results[2].observation == "You add 1. The counter shows 10."
    broken = results[1]
    assert broken.fault.startswith(fault)
    assert (broken.observation, broken.reward) == (FAULT_OBSERVATION, 0.0)
    assert (broken.terminated, broken.truncated) == (False, True)
    assert broken.info["end_reason"] == "fault"
    assert (broken.info["task_id"], broken.info["turn"], broken.info["score"]) == (NINE, 2, 0.5)
    assert broken.retryable == (command not in ("ruin", "stumble"))
    with pytest.raises(ResetNeeded):
        env.send([1], ["add 1"])
    env.send_reset([1], tasks=[SIX])
    env.send([2], ["take away 1"])
    results = receive(env, 2)
    assert results[1].observation.startswith("Make the counter show 6")
    assert results[2].info["score"] == 0.5
    assert results[1].retryable


def test_spawned_workers_survive_too(perilous):
    env = perilous(2, workers="spawn")
    env.reset()
    *_, infos = env.step(["die", "add 1"])
    assert infos["fault"].tolist() == [
        "the worker process was killed by SIGKILL; the worker was replaced",
        "",
    ]
    env.reset(options={"reset_mask": np.array([True, False])})
    *_, infos = env.step(["add 1", "add 1"])
    assert infos["turn"].tolist() == [1, 2]


@pytest.mark.parametrize("command", ["nap 60000", "brood", "flee"])
def test_a_hung_step_is_given_up_and_nothing_of_the_others_lost(perilous, command):
    env = perilous(step_timeout_s=0.5)
    env.reset()
    env.send(range(3), ["add 1", command, "nap 100"])
    start = time.monotonic()
    results = receive(env, 3)
    assert 0.5 <= time.monotonic() - start < 5
    assert results[1].fault == "step() took longer than 0.5 s; the worker was replaced"
    assert [results[index].fault for index in (0, 2)] == ["", ""]
    env.send_reset([1])
    assert not receive(env, 1)[1].fault


def test_a_result_that_was_ready_is_taken_however_late_it_is_asked_for(perilous):
    env = perilous(2, step_timeout_s=0.3)
    env.reset()
    env.send([0, 1], ["add 1", "read 60 pages"])
    time.sleep(0.8)
    results = receive(env, 2)
    assert [results[index].fault for index in (0, 1)] == ["", ""]
    assert len(results[1].observation) > 400_000


def test_time_to_start_a_worker_is_not_charged_to_a_step(perilous):
    env = perilous(2, workers="spawn", step_timeout_s=0.05)
    assert env.get_attr("split") == ("train", "train")  # the second has to start for it


def test_a_worker_killed_from_outside_between_two_steps_is_a_fault_of_its_episode(lasting):
    env = lasting
    env.reset()
    env.step(["add 1"] * 3)
    os.kill(env.get_attr("pid")[0], signal.SIGKILL)
    *_, infos = env.step(["add 1"] * 3)
    killed = "the worker process was killed by SIGKILL; the worker was replaced"
    assert infos["fault"].tolist() == [killed, "", ""]
    assert infos["turn"].tolist() == [2, 2, 2]
    env.reset()
    os.kill(env.get_attr("pid")[1], signal.SIGKILL)
    time.sleep(0.2)
    assert env.recv(timeout=0) == []  # notices, and has nothing to tell
    *_, infos = env.step(["add 1"] * 3)
    assert infos["fault"].tolist() == ["", killed, ""]
    os.kill(env.get_attr("pid")[0], signal.SIGKILL)
    time.sleep(0.2)
    _, infos = env.reset()  # nothing is lost by it
    assert infos["fault"].tolist() == ["", "", ""]


def test_a_worker_killed_from_outside_during_a_step_is_noticed_at_once(lasting):
    env = lasting
    env.reset()
    pid = env.get_attr("pid")[0]
    env.send([0, 1], ["nap 60000", "add 1"])
    killing = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
    killing.start()
    start = time.monotonic()
    results = receive(env, 2)
    assert time.monotonic() - start < 5
    killing.join()
    assert results[0].fault.startswith("the worker process was killed by SIGKILL")
    assert not results[1].fault


def test_a_death_is_noticed_although_a_child_of_the_worker_holds_its_connection(perilous):
    env = perilous(2, step_timeout_s=60.0)
    env.reset()
    env.step(["breed", "add 1"])
    start = time.monotonic()
    *_, infos = env.step(["die", "add 1"])
    assert time.monotonic() - start < 30
    assert infos["fault"][0].startswith("the worker process was killed by SIGKILL")


def test_a_fault_that_is_raised_again_does_not_grow(lasting):
    lengths = []
    for _ in range(12):
        lasting.send_reset([0])
        receive(lasting, 1)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                "agentgym_envs.vector.results._logger.warning",
                lambda *_, exc_info: lengths.append(sum(map(len, exc_info.__notes__))),
            )
            lasting.send([0], ["repeat"])
            assert receive(lasting, 1)[0].fault == "the wall is gone for good"
    assert len(lengths) == 12
    assert lengths[-1] < 20 * lengths[0]  # doubling: 2048 times


def launcher_of(env):
    pid = env.get_attr("pid")[0]
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_a_launcher_that_hangs_is_replaced(perilous, monkeypatch):
    monkeypatch.setattr("agentgym_envs.vector.launcher._ANSWER_S", 0.5)
    env = perilous(2)
    env.reset()
    os.kill(launcher_of(env), signal.SIGSTOP)
    *_, infos = env.step(["die", "add 1"])
    assert infos["fault"][0].startswith("the worker process ended, and so did the process that")
    env.reset()
    assert env.step(["add 1", "add 1"])[4]["fault"].tolist() == ["", ""]


def test_all_go_on_after_the_launcher_was_killed(perilous):
    env = perilous(2)
    env.reset()
    os.kill(launcher_of(env), signal.SIGKILL)
    time.sleep(0.3)  # the kernel kills the workers
    *_, truncations, infos = env.step(["add 1", "add 1"])
    assert truncations.all()
    ended = "the worker process ended, and so did the process that started it"
    assert infos["fault"].tolist() == [f"{ended}; the worker was replaced"] * 2
    env.reset()
    *_, infos = env.step(["add 1", "die"])
    assert infos["fault"].tolist()[0] == ""
    assert infos["fault"].tolist()[1].startswith("the worker process was killed by SIGKILL")


def test_what_a_world_prints_disturbs_nothing(perilous, capfd):
    env = perilous(2)
    env.reset()
    observations, *_ = env.step(["shout", "shout"])
    assert observations == ("You shout. The counter shows 0.",) * 2
    assert capfd.readouterr().out.count("hey!") == 6


def test_a_world_that_eats_memory_is_stopped_at_the_limit(perilous):
    env = perilous(2, max_memory_mb=400)
    env.reset()
    env.send([0, 1], ["eat 100", "eat 100000"])
    results = receive(env, 2)
    assert results[0].observation.startswith("You eat.")
    used = "the worker process used more than 400 MiB of memory and was killed"
    assert results[1].fault == f"{used}; the worker was replaced"
    env.send_reset([1])
    assert not receive(env, 1)[1].fault


def test_a_stopped_worker_does_not_block_the_caller(perilous):
    env = perilous(2, step_timeout_s=1.0)
    env.reset()
    os.kill(env.get_attr("pid")[0], signal.SIGSTOP)
    start = time.monotonic()
    env.send([0, 1], ["x" * 1_000_000, "add 1"])
    assert time.monotonic() - start < 0.5
    results = receive(env, 2)
    assert results[0].fault == "step() took longer than 1.0 s; the worker was replaced"
    assert not results[1].fault


def test_sending_a_long_text_costs_little_more_than_pickling_it(lasting):
    lasting.send_reset([0])
    receive(lasting, 1)
    text = "x" * (64 << 20)
    start = time.process_time()
    pickle.dumps(text)
    pickled = time.process_time()
    lasting.send([0], [text])
    receive(lasting, 1)
    sent = time.process_time()
    assert sent - pickled < 50 * (pickled - start)  # 5 times; copying the rest each time: 300


# --------------------------------------------------------------------------------------- deadlines


@pytest.mark.parametrize("workers", ["threads", "forkserver"])
def test_limits_of_any_size_are_kept(make_vector, workers):
    limits = {"step_timeout_s": 1e12, "reset_timeout_s": np.float64(1e12)}
    env = make_vector(PerilousEnv, 2, workers=workers, **limits)
    env.reset()
    env.send([0, 1], ["nap 30", "nap 30"])
    results = {}
    while len(results) < 2:
        results |= dict(env.recv(timeout=1e12))
    assert not any(result.fault for result in results.values())


@pytest.mark.parametrize("limit", [float("inf"), np.float64(4000), np.int64(4000)])
def test_a_memory_limit_may_be_infinite_or_come_from_numpy(perilous, limit):
    perilous(1, max_memory_mb=limit).reset()


@pytest.mark.parametrize("workers", ["threads", "forkserver"])
def test_deadlines_are_those_of_the_family_unless_the_caller_names_others(make_vector, workers):
    env = make_vector(Hasty, 2, workers=workers)
    env.reset()
    *_, infos = env.step(["nap 1000", "add 1"])
    assert infos["fault"].tolist() == [
        "step() took longer than 0.4 s; the worker was replaced",
        "",
    ]
    patient = make_vector(Hasty, 2, workers=workers, step_timeout_s=float("inf"))
    patient.reset()
    *_, infos = patient.step(["nap 800", "add 1"])
    assert infos["fault"].tolist() == ["", ""]


def test_an_environment_without_deadlines_has_none(make_vector):
    class Plain(gymnasium.Env):
        observation_space = action_space = CountingEnv().action_space

        def reset(self, **kwargs):
            return "go", {}

        def step(self, action):
            return "on", 0.0, False, False, {}

    for workers in ("threads", "forkserver"):
        env = make_vector(Plain, 2, workers=workers)
        env.reset()
        assert env.step(["a", "b"])[0] == ("on", "on")


# ----------------------------------------------------------------------------------------- borders


def test_what_cannot_be_sent_is_refused(make_vector):
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"an id, a spec, or a function, .*'_thread.lock'"):
        make_vector(lambda: (lock, CountingEnv())[1], 2, workers="forkserver")
    for limits, message in (
        ({"max_threads": 2}, "process workers .* cannot keep max_threads=2"),
        ({"max_memory_mb": -1}, "max_memory_mb must be positive"),
    ):
        with pytest.raises(ValueError, match=message):
            make_vector(workers="forkserver", **limits)
    with pytest.raises(ValueError, match=r"threads share one process: .* max_memory_mb=100"):
        make_vector(workers="threads", max_memory_mb=100)


def test_arguments_and_answers_that_cannot_be_pickled_break_nothing(lasting):
    env = lasting
    env.reset()
    env.step(["add 1"] * 3)
    with pytest.raises(
        TypeError, match=r"the arguments of render_command\(\) cannot be sent: .*lamb"
    ):
        env.call("render_command", lambda: 3)
    with pytest.raises(
        TypeError, match=r"the answer of oracle\(\) cannot be sent from its process"
    ):
        env.call("oracle")
    assert env.step(["add 1"] * 3)[4]["turn"].tolist() == [2, 2, 2]


def test_an_info_that_cannot_be_pickled_is_a_fault(make_vector):
    env = make_vector(SecretInfo, 2, workers="forkserver")
    env.reset()
    *_, infos = env.step(["add 1", "add 1"])
    sentence = "the answer of step() cannot be sent from its process: "
    assert all(fault.startswith(sentence) for fault in infos["fault"])
    env.reset()


def test_what_a_call_raises_is_raised_here_with_the_place_where_it_happened(lasting):
    env = lasting
    env.reset()
    with pytest.raises(AttributeError, match="colour") as error:
        env.get_attr("colour")
    assert "In a worker process:" in error.value.__notes__[0]
    assert "Traceback" in error.value.__notes__[0]


def test_a_fault_is_logged_with_its_traceback(lasting, caplog):
    env = lasting
    env.reset()
    with caplog.at_level(logging.WARNING, "agentgym_envs"):
        env.step(["ruin", "add 1", "add 1"])
    (record,) = caplog.records
    assert record.getMessage() == "environment 0 broke"
    assert "in ruin" in caplog.text


def test_mistakes_are_raised_and_lose_no_result(lasting):
    env = lasting
    env.send_reset(range(3), tasks=[THREE, "counting/trian/6", NINE])
    results, mistakes = {}, 0
    while len(results) + mistakes < 3:
        try:
            results |= dict(env.recv(timeout=10))
        except UnknownName as error:
            assert "did you mean 'counting/train/6'" in str(error)  # noqa: PT017
            mistakes += 1
    assert sorted(results) == [0, 2]
    env.send([0, 2], ["add 1"] * 2)
    assert len(receive(env, 2)) == 2


def test_a_reset_that_breaks_is_reported_and_tried_again(perilous, tmp_path):
    sulks = tmp_path / "sulks"
    env = perilous(2, sulks=str(sulks))
    sulks.touch()
    _, infos = env.reset()
    assert infos["fault"].tolist() == ["the wall is gone"] * 2
    sulks.unlink()
    _, infos = env.reset()
    assert infos["fault"].tolist() == [""] * 2


def test_an_environment_that_cannot_be_built_says_so(perilous, tmp_path):
    broken = tmp_path / "broken"
    broken.touch()
    with pytest.raises(OSError, match="no space left on the wall"):
        perilous(2, broken=str(broken))
    broken.unlink()
    env = perilous(2, broken=str(broken))
    env.reset()
    broken.touch()
    env.step(["die", "add 1"])
    _, infos = env.reset(options={"reset_mask": np.array([True, False])})
    assert infos["fault"][0] == (
        "the environment could not be built: OSError: no space left on the wall"
    )
    broken.unlink()
    _, infos = env.reset()
    assert infos["fault"].tolist() == [""] * 2


def test_a_module_that_only_the_caller_has_is_named(make_vector):
    module = type(sys)("only_here")
    exec("from counting import CountingEnv\nclass Here(CountingEnv):\n    pass", vars(module))
    sys.modules["only_here"] = module
    try:
        with pytest.raises(ModuleNotFoundError, match="only_here"):
            make_vector(module.Here, 2, workers="forkserver")
    finally:
        del sys.modules["only_here"]


def test_a_world_that_kills_its_process_when_built_is_a_fault_not_a_storm(make_vector):
    def deadly():
        os._exit(5)

    with pytest.raises(WorkerFault, match="exited with code 5; the worker was replaced"):
        make_vector(deadly, 2, workers="forkserver")


def test_processes_can_be_made_by_make_vec():
    env = gymnasium.make_vec("Test/Counting-v0", num_envs=2, workers="forkserver", highest=30)
    try:
        assert isinstance(env, TextVectorEnv)
        assert env.get_attr("highest") == (30, 30)
        assert not hasattr(env, "envs")
    finally:
        env.close()
