"""The Java process: when it starts, what ends it, and what happens to those who wait for it."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import gymnasium
import pytest
from gymnasium.vector import AsyncVectorEnv

import agentgym_envs  # noqa: F401
from agentgym_envs.errors import EnvFault, Unsupported
from agentgym_envs.sciworld import java_runtime, session
from agentgym_envs.sciworld.backend import Server, SimulatorError, server
from agentgym_envs.sciworld.messages import Request

ID = "AgentGym/SciWorld-v0"
BOIL = "sciworld/train/boil/0"
TIMEOUT_S = 60.0


@pytest.fixture
def own_server():
    host = Server(2)
    yield host
    host.close()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as status:
            return status.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends_soon(pid):
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_all_environments_of_a_process_share_one_server(make):
    first, second = make(), make()
    first.reset(options={"task": BOIL})
    host = server()
    second.reset(options={"task": BOIL})
    assert server() is host
    first.step("wait1")
    assert second.step("look around")[4]["turn"] == 1


def test_a_killed_server_ends_running_episodes_as_faults_and_the_next_reset_works(make):
    env, other = make(), make()
    env.reset(options={"task": BOIL})
    other.reset(options={"task": BOIL})
    pid = server().process.pid
    os.kill(pid, signal.SIGKILL)
    for running in (env, other):
        with pytest.raises(EnvFault, match="Java process of SciWorld"):
            running.step("wait1")
    assert ends_soon(pid)
    observation, _ = env.reset(options={"task": BOIL})
    assert "hallway" in observation
    assert server().process.pid != pid
    assert other.reset(options={"task": BOIL})[0] == observation


def test_requests_on_their_way_become_faults(own_server):
    simulator = own_server.new_simulator()
    own_server.call(simulator, ["load", "boil", "0", ""], TIMEOUT_S)
    with ThreadPoolExecutor(8) as threads:
        waits = [Request(simulator, ["step", "wait"])] * 2000
        answers = [threads.submit(own_server.call_all, waits, TIMEOUT_S) for _ in range(8)]
        os.kill(own_server.process.pid, signal.SIGKILL)
        for answer in answers:
            with pytest.raises(EnvFault, match="Java process of SciWorld"):
                answer.result(TIMEOUT_S)
    assert not own_server.is_open
    with pytest.raises(EnvFault, match="has ended"):
        own_server.call(simulator, ["look"], TIMEOUT_S)


def test_a_server_that_died_unseen_is_replaced_by_the_next_reset(make):
    env = make()
    observation, _ = env.reset(options={"task": BOIL})
    dead = server()
    os.kill(dead.process.pid, signal.SIGKILL)
    dead.process.wait()
    assert env.reset(options={"task": BOIL})[0] == observation
    assert server() is not dead


SLOW = ["gold", "mendelian-genetics-unknown-plant", "3", ""]


def test_of_many_requests_the_deadline_names_the_one_that_hangs(own_server):
    numbers = [own_server.new_simulator() for _ in range(3)]
    own_server.call(numbers[0], ["load", "boil", "0", ""], TIMEOUT_S)
    requests = [
        Request(numbers[0], ["step", "wait1"]),
        Request(numbers[1], SLOW),
        Request(numbers[0], ["step", "look around"]),
    ]
    with pytest.raises(EnvFault) as error:
        own_server.call_all(requests, 0.5)
    assert str(error.value) == (
        "SciWorld did not answer 'gold mendelian-genetics-unknown-plant 3 ' within 0.5 s; "
        "its Java process was ended"
    )
    assert not own_server.is_open
    assert ends_soon(own_server.process.pid)


def finish_all(host, batch, timeout_s):
    """What finishing each of a batch in turn raises."""
    errors = []
    for begun in batch:
        with pytest.raises((EnvFault, KeyboardInterrupt)) as error:
            host.finish(begun, timeout_s)
        errors.append(error.value)
    return errors


def test_all_that_went_out_with_a_request_that_hangs_name_it(own_server):
    hanging, other = own_server.new_simulator(), own_server.new_simulator()
    own_server.call(other, ["load", "boil", "0", ""], TIMEOUT_S)
    batch = [own_server.begin(other, ["look"]), own_server.begin(hanging, SLOW)]
    batch.append(own_server.begin(hanging, ["look"]))
    errors = finish_all(own_server, batch, 0.5)
    assert [type(error) for error in errors] == [EnvFault] * 3
    assert {str(error) for error in errors} == {
        "SciWorld did not answer 'gold mendelian-genetics-unknown-plant 3 ' within 0.5 s; "
        "its Java process was ended"
    }


def test_all_that_went_out_together_tell_that_the_process_ended(own_server):
    batch = [own_server.begin(own_server.new_simulator(), ["tasks"]) for _ in range(3)]
    os.kill(own_server.process.pid, signal.SIGKILL)
    errors = finish_all(own_server, batch, TIMEOUT_S)
    assert all(type(error) is EnvFault for error in errors)
    assert "the Java process of SciWorld" in str(errors[0])
    assert {str(error) for error in errors} == {str(errors[0])}


def test_an_interrupt_of_one_request_is_a_fault_of_those_that_went_out_with_it(
    own_server, monkeypatch
):
    def interrupted(*args):
        raise KeyboardInterrupt

    batch = [own_server.begin(own_server.new_simulator(), ["tasks"]) for _ in range(2)]
    with monkeypatch.context() as patch:
        patch.setattr(own_server, "_receive", interrupted)
        first, second = finish_all(own_server, batch, TIMEOUT_S)
    assert type(first) is KeyboardInterrupt
    assert type(second) is EnvFault
    assert str(second) == (
        "a request to SciWorld went out with one that KeyboardInterrupt() interrupted"
    )


def test_a_request_is_finished_by_the_thread_that_began_it(own_server):
    begun = own_server.begin(own_server.new_simulator(), ["tasks"])
    with ThreadPoolExecutor(1) as threads, pytest.raises(EnvFault, match="had not begun it"):
        threads.submit(own_server.finish, begun, TIMEOUT_S).result()
    assert "boil" in own_server.finish(begun, TIMEOUT_S)


def test_what_waits_for_a_simulator_is_not_done_once_that_is_dropped(own_server):
    simulator, other = own_server.new_simulator(), own_server.new_simulator()
    load = ["load", "boil", "0", ""]
    requests = [Request(simulator, load)] * 3 + [Request(simulator, ["drop"])]
    *_, last, drop, unconcerned = own_server.call_all([*requests, Request(other, load)], TIMEOUT_S)
    assert (last.ok, last.texts) == (False, ["this simulator was let go of"])
    assert (drop.ok, drop.texts) == (True, [])
    assert unconcerned.ok
    assert own_server.call(simulator, load, TIMEOUT_S) == unconcerned.texts


def test_a_simulator_that_is_busy_keeps_no_other_waiting(own_server):
    busy, idle = own_server.new_simulator(), own_server.new_simulator()
    own_server.call(idle, ["load", "boil", "0", ""], TIMEOUT_S)
    with ThreadPoolExecutor(1) as threads:
        slow = threads.submit(own_server.call, busy, SLOW, TIMEOUT_S)
        own_server.call(idle, ["step", "wait1"], TIMEOUT_S)
        assert not slow.done()
        own_server.close()
        with pytest.raises(EnvFault, match="ended before it answered"):
            slow.result(TIMEOUT_S)


@pytest.fixture
def stopped_server(make):
    """An environment whose Java process does not run any more, and is not dead either."""
    env = make()
    env.reset(options={"task": BOIL})
    host = server()
    os.kill(host.process.pid, signal.SIGSTOP)
    yield env
    host.close()


def test_a_hung_process_ends_at_the_deadline_of_the_action(stopped_server, monkeypatch):
    pid = server().process.pid
    monkeypatch.setattr(session, "STEP_TIMEOUT_S", 0.2)
    with pytest.raises(EnvFault, match=r"'step use thermometer on water' within 0\.2 s"):
        stopped_server.step("use thermometer on water")
    assert ends_soon(pid)
    assert "hallway" in stopped_server.reset(options={"task": BOIL})[0]


def test_a_message_that_a_hung_process_does_not_take_is_late_too(stopped_server):
    host = server()
    with pytest.raises(EnvFault, match=r"did not answer 'look x{195}' within 0\.2 s"):
        host.call_all([Request(1, ["look", "x" * 1_000_000])], 0.2)


def test_an_interrupted_step_ends_the_episode_and_the_next_reset_works(make, monkeypatch):
    env = make()
    observation, _ = env.reset(options={"task": BOIL})
    host = server()

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(host, "_receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            env.step("wait")
    with pytest.raises(EnvFault, match="was closed"):
        env.step("wait")
    assert env.reset(options={"task": BOIL})[0] == observation
    assert server() is host


def server_of(heap_mb, monkeypatch):
    monkeypatch.setattr(java_runtime, "_LEAST_HEAP_MB", heap_mb)
    monkeypatch.setenv("AGENTGYM_SCIWORLD_HEAP_MB", str(heap_mb))
    host = Server(2)
    monkeypatch.setattr(session, "server", lambda: host)
    return host


@pytest.fixture
def small_server(monkeypatch):
    host = server_of(16, monkeypatch)
    yield host
    host.close()


def test_a_full_heap_is_a_fault_that_says_how_to_get_more(small_server):
    with pytest.raises(EnvFault) as error:
        session.Session().load("boil", 0, "")
    assert str(error.value) == (
        "SciWorld broke at 'load boil 0 ': java.lang.OutOfMemoryError: no room for another world; "
        "the heap of 16 MB is full: set AGENTGYM_SCIWORLD_HEAP_MB, or let go of some worlds"
    )
    assert small_server.is_open


@pytest.mark.slow
def test_a_new_world_is_refused_while_those_that_exist_have_room_to_go_on(monkeypatch):
    host = server_of(48, monkeypatch)
    worlds = []

    def load_until_refused():
        while len(worlds) < 120:
            world = session.Session()
            world.load("boil", 0, "")
            worlds.append(world)

    try:
        with pytest.raises(EnvFault, match="no room for another world; the heap of 48 MB"):
            load_until_refused()
        assert len(worlds) > 20
        with pytest.raises(EnvFault, match="no room for another world"):
            session.gold_actions("boil", 0, "")
        results = {world.step("wait1") for world in worlds}
        assert len(results) == 1
        assert len({world.load("melt", 0, "") for world in worlds[:5]}) == 1
        for world in worlds[:10]:
            world.close()
        session.Session().load("boil", 0, "")
    finally:
        host.close()


def test_a_message_that_the_heap_does_not_hold_ends_the_server(small_server):
    with pytest.raises(EnvFault, match="Java process of SciWorld"):
        small_server.call(1, ["look", "x" * 20_000_000], TIMEOUT_S)
    assert ends_soon(small_server.process.pid)


def test_a_program_that_is_no_java_is_quoted(monkeypatch):
    monkeypatch.setenv("AGENTGYM_JAVA", sys.executable)
    with pytest.raises(EnvFault, match=r"python\S* says: .*[Uu]nknown option"):
        Server()


def test_what_the_simulator_refuses_is_no_fault_of_the_server(own_server):
    simulator = own_server.new_simulator()
    with pytest.raises(SimulatorError, match="no-such-task"):
        own_server.call(simulator, ["load", "no-such-task", "0", ""], TIMEOUT_S)
    with pytest.raises(SimulatorError, match="no such request: dance"):
        own_server.call(simulator, ["dance"], TIMEOUT_S)
    assert own_server.is_open


def test_simulators_of_many_threads_do_not_disturb_each_other(own_server):
    def play(number):
        simulator = own_server.new_simulator()
        chosen = ["", "openDoors"][number % 2]
        texts = own_server.call(simulator, ["load", "grow-fruit", "1", chosen], TIMEOUT_S)
        for line in ["open door to greenhouse", "go to greenhouse", *["wait"] * 4, "look around"]:
            texts += own_server.call(simulator, ["step", line], TIMEOUT_S)
        return texts + own_server.call(simulator, ["state"], TIMEOUT_S)

    alone = [play(0), play(1)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, range(8))) == alone * 4


OWNER = """
import os, signal, sys, time
import gymnasium, agentgym_envs
from agentgym_envs.sciworld.backend import server
env = gymnasium.make("AgentGym/SciWorld-v0")
env.reset(options={"task": "sciworld/train/boil/0"})
if sys.argv[1] == "fork" and os.fork() == 0:
    time.sleep(60)
print(server().process.pid, flush=True)
if sys.argv[1] != "exit":
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("ending", ["exit", "kill", "fork"])
def test_the_server_ends_with_its_owner(ending):
    command = [sys.executable, "-W", "error", "-c", OWNER, ending]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as owner:
        pid = int(owner.stdout.readline())
        assert ends_soon(pid)
        if ending == "exit":
            assert owner.wait(20) == 0
            assert owner.stderr.read() == b""
        if ending == "fork":
            kill_children_of_group(owner)


def kill_children_of_group(owner):
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as line:
                    words = line.read().split(b"\0")
            except OSError:
                continue
            if OWNER.encode() in words and int(entry) != owner.pid:
                os.kill(int(entry), signal.SIGKILL)


def test_a_forked_child_has_a_server_of_its_own(make):
    env = make()
    env.reset(options={"task": BOIL})
    ours = server().process.pid
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        status = b"wrong"
        try:
            env.step("wait1")
        except EnvFault:
            env.reset(options={"task": BOIL})
            status = b"own" if server().process.pid != ours else b"shared"
            server().close()
        finally:
            os.write(writer, status)
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        assert pipe.read() == b"own"
    os.waitpid(child, 0)
    assert server().process.pid == ours
    assert env.step("look around")[4]["turn"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_stock_vector_environments_work(context):
    makers = [lambda: gymnasium.make("agentgym_envs:" + ID)] * 2
    server()  # a parent with a running server is the hard case
    env = AsyncVectorEnv(makers, shared_memory=False, context=context)
    try:
        env.reset(seed=0)
        observations, *_ = env.step(("look around", "inventory"))
        assert observations[0].startswith("This ")
        assert observations[1].startswith("In your inventory")
    finally:
        env.close()


def test_without_java_one_sentence_tells_what_to_install(monkeypatch):
    monkeypatch.delenv("AGENTGYM_JAVA", raising=False)
    monkeypatch.setattr(java_runtime.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(java_runtime.shutil, "which", lambda name: None)
    with pytest.raises(Unsupported) as error:
        java_runtime.java_command()
    assert str(error.value) == (
        'SciWorld needs Java, and there is none: pip install "agentgym-suite[sciworld]"'
    )
    with pytest.raises(Unsupported, match="SciWorld needs the package scienceworld: pip install"):
        java_runtime.simulator_jar()


def test_a_java_that_is_named_is_used(monkeypatch):
    monkeypatch.setenv("AGENTGYM_JAVA", "no-such-java")
    with pytest.raises(Unsupported, match="AGENTGYM_JAVA names 'no-such-java', which is no"):
        java_runtime.java_command()
    monkeypatch.setenv("AGENTGYM_JAVA", sys.executable)
    assert java_runtime.java_command() == sys.executable


def test_the_heap_is_bounded_and_can_be_set(monkeypatch):
    assert "-Xmx512m" in java_runtime.server_command(1)
    monkeypatch.setenv("AGENTGYM_SCIWORLD_HEAP_MB", "768")
    assert "-Xmx768m" in java_runtime.server_command(1)
    monkeypatch.setenv("AGENTGYM_SCIWORLD_HEAP_MB", "12")
    with pytest.raises(ValueError, match="at least 64, got '12'"):
        java_runtime.server_command(1)
