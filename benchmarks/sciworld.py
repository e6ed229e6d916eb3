"""What SciWorld costs beside the official `ScienceWorldEnv`: the same actions, in one run.

``speed``: steps that tick the world (gold actions of boiling water), ours without and with the list
of valid actions, which the official step always makes; and load with reset. Blocks of both sides
alternate; a ratio is that of the medians. Wall time is what a user waits, CPU time is that of
both processes of a side and depends less on what else the machine does.

``memory``: resident memory of the Java process by number of simulators. ``threads``: steps a second
of one simulator, and of 32 copies of it on one thread and on two. ``vector``: steps a second of 32
environments, by kind of workers. ``leak``: memory over many episodes.

    python benchmarks/sciworld.py speed memory threads vector leak
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
from common import emit

import agentgym_envs  # noqa: F401
from agentgym_envs.sciworld.backend import Server, server
from agentgym_envs.sciworld.experiments import NAMES
from agentgym_envs.sciworld.messages import Request
from agentgym_envs.sciworld.oracle import gold_of

ID = "AgentGym/SciWorld-v0"
TASK = ("boil", 0)
NUM_STEPS = 20
BARS = {"step": 10.0, "step with valid actions": 4.0, "load and reset": 1.8}
MAX_MB_A_SIMULATOR = 15.0
LEAST_SPEEDUP = 1.5
NUM_BLOCK_STEPS = 1600
TIMEOUT_S = 300.0
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts: dict[str, Callable[[argparse.Namespace], None]] = {
        "speed": speed,
        "memory": memory,
        "threads": threads,
        "vector": vector,
        "leak": leak,
    }
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=list(parts))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--warm-up", type=int, default=3)
    parser.add_argument("--episodes", type=int, default=2000, help="of the part leak")
    options = parser.parse_args()
    for name in options.parts:
        parts[name](options)


# ------------------------------------------------------------------------------------- speed


class Block:
    """Wall and CPU seconds of one side's blocks.

    Args:
        run: one block.
        pids: processes whose CPU time counts.
        units: how many steps or resets a block has.
    """

    def __init__(self, run: Callable[[], None], pids: list[int], units: int) -> None:
        self._run, self._pids, self._units = run, pids, units
        self.wall: list[float] = []
        self.cpu: list[float] = []

    def time(self) -> None:
        cpu, wall = self._cpu_s(), time.perf_counter()
        self._run()
        self.wall.append((time.perf_counter() - wall) / self._units)
        self.cpu.append((self._cpu_s() - cpu) / self._units)

    def _cpu_s(self) -> float:
        return time.process_time() + sum(map(cpu_seconds, self._pids))


def speed(options: argparse.Namespace) -> None:
    from scienceworld import ScienceWorldEnv

    gold = gold_of(*TASK, "")[:NUM_STEPS]
    task = {"task": "sciworld/train/boil/0", "horizon": 10_000}
    plain, listing = gymnasium.make(ID), gymnasium.make(ID, info_keys=("admissible",))
    theirs = ScienceWorldEnv()
    for env in (plain, listing):
        env.reset(options=task)
    java, py4j = [server().process.pid], [theirs._gateway.java_process.pid]

    def official_load() -> None:
        theirs.load(*TASK, "")
        theirs.reset()

    def official_steps() -> None:
        for line in gold:
            theirs.step(line)

    def our_steps(env: Any) -> None:
        for line in gold:
            env.step(line)

    official_load()
    loads = Block(lambda: [plain.reset(options=task) for _ in range(3)] and None, java, 3)
    official_loads = Block(lambda: [official_load() for _ in range(3)] and None, py4j, 3)
    blocks = {
        "ours": Block(lambda: our_steps(plain), java, len(gold)),
        "ours with valid": Block(lambda: our_steps(listing), java, len(gold)),
        "official": Block(official_steps, py4j, len(gold)),
    }
    for repeat in range(options.warm_up + options.repeats):
        for block in (loads, official_loads):
            block.time()
        listing.reset(options=task)
        for block in blocks.values():
            block.time()
        if repeat < options.warm_up:
            for block in (loads, official_loads, *blocks.values()):
                block.wall.clear()
                block.cpu.clear()
    compare("step", blocks["official"], blocks["ours"])
    compare("step with valid actions", blocks["official"], blocks["ours with valid"])
    compare("load and reset", official_loads, loads)
    theirs.close()
    plain.close()
    listing.close()


def compare(name: str, official: Block, ours: Block) -> None:
    """Print the ratio of the official cost to ours."""
    ratio = statistics.median(official.wall) / statistics.median(ours.wall)
    emit(
        f"speed/{name}",
        round(ratio, 2),
        "times the official speed, wall",
        bar=BARS[name],
        ok=ratio >= BARS[name],
        cpu_ratio=round(statistics.median(official.cpu) / statistics.median(ours.cpu), 2),
        official_ms=round(1000 * statistics.median(official.wall), 3),
        ours_ms=round(1000 * statistics.median(ours.wall), 3),
        ratios=[round(a / b, 2) for a, b in zip(official.wall, ours.wall, strict=True)],
        load_average=round(os.getloadavg()[0], 1),
    )


# ------------------------------------------------------------------------- memory and threads


def memory(options: argparse.Namespace) -> None:
    host = Server(2)
    resident = {}
    for count in (1, 8, 32):
        simulators = [host.new_simulator() for _ in range(count)]
        for _ in range(3):
            for number, simulator in enumerate(simulators):
                load(host, simulator, number)
                host.call(simulator, ["step", "wait1"], TIMEOUT_S)
        resident[count] = resident_mb(host.process.pid)
        for simulator in simulators:
            host.drop(simulator)
    extra = (resident[32] - resident[1]) / 31
    emit(
        "memory/extra simulator",
        round(extra, 1),
        "MB resident",
        bar=MAX_MB_A_SIMULATOR,
        ok=extra <= MAX_MB_A_SIMULATOR,
        resident_mb=resident,
    )
    host.close()


def threads(options: argparse.Namespace) -> None:
    """Blocks of one simulator, and of 32 on one thread and on two, in turn.

    Threads that wait for a core are not at fault for it, so that time is told too: on a machine
    that does other things the ratio of wall times is a lower bound.
    """
    sides = {name: _threads_side(*name) for name in ((1, 1), (32, 1), (32, 2))}
    for repeat in range(options.warm_up + options.repeats):
        for side in sides.values():
            side.time(is_kept=repeat >= options.warm_up)
    one, many = sides[1, 1].medians(), sides[32, 2].medians()
    ratio = one.wall_ms / many.wall_ms
    emit(
        "threads/32 simulators on 2 threads",
        round(ratio, 2),
        "times the steps a second of one",
        bar=LEAST_SPEEDUP,
        ok=ratio >= LEAST_SPEEDUP,
        ms_a_step={
            f"{count} on {num_threads}": side.medians()._asdict()
            for (count, num_threads), side in sides.items()
        },
        load_average=round(os.getloadavg()[0], 1),
    )
    for side in sides.values():
        side.host.close()


class Costs(NamedTuple):
    """What a step takes, in milliseconds: of wall time, of CPU time, of waiting for a core."""

    wall_ms: float
    cpu_ms: float
    waiting_ms: float


class ThreadsSide:
    """A server whose simulators are all stepped in one message.

    Args:
        host: the server.
        simulators: their numbers, with a world each.
    """

    def __init__(self, host: Server, simulators: list[int]) -> None:
        self.host, self._simulators = host, simulators
        self._found: list[Costs] = []

    def time(self, *, is_kept: bool) -> None:
        """Step for a while."""
        pid = self.host.process.pid
        cpu, waiting = cpu_seconds(pid), waiting_seconds(pid)
        rate = steps_a_second(self.host, self._simulators, NUM_BLOCK_STEPS)
        per_step = 1000 / NUM_BLOCK_STEPS
        costs = Costs(
            1000 / rate,
            per_step * (cpu_seconds(pid) - cpu),
            per_step * (waiting_seconds(pid) - waiting),
        )
        if is_kept:
            self._found.append(costs)

    def medians(self) -> Costs:
        """Over the blocks that were kept."""
        return Costs(
            *(round(statistics.median(values), 3) for values in zip(*self._found, strict=True))
        )


def _threads_side(count: int, num_threads: int) -> ThreadsSide:
    host = Server(num_threads)
    simulators = [host.new_simulator() for _ in range(count)]
    for simulator in simulators:
        host.call(simulator, ["load", TASK[0], str(TASK[1]), ""], TIMEOUT_S)
    return ThreadsSide(host, simulators)


def steps_a_second(host: Server, simulators: list[int], num_steps: int) -> float:
    """Steps that tick the world, one of each simulator in a message."""
    requests = [Request(simulator, ["step", "wait1"]) for simulator in simulators]
    start = time.perf_counter()
    for _ in range(num_steps // len(requests)):
        host.call_all(requests, TIMEOUT_S)
    return num_steps / (time.perf_counter() - start)


def vector(options: argparse.Namespace) -> None:
    """Steps a second of a vector environment of 32, by kind of workers."""
    for workers in ("inline", "threads"):
        env = gymnasium.make_vec(ID, num_envs=32, workers=workers)
        env.reset(options={"tasks": ["sciworld/train/boil/0"] * 32, "horizons": [10_000] * 32})
        actions = ("wait1",) * 32
        rates = []
        for _ in range(1 + options.repeats):
            start = time.perf_counter()
            for _ in range(30):
                env.step(actions)
            rates.append(round(30 * 32 / (time.perf_counter() - start)))
        env.close()
        emit(
            f"vector/{workers}",
            round(statistics.median(rates[1:])),
            "steps a second of 32 environments",
            rates=rates[1:],
            load_average=round(os.getloadavg()[0], 1),
        )


def leak(options: argparse.Namespace) -> None:
    host = Server(2)
    simulators = [host.new_simulator() for _ in range(16)]
    resident = []
    for episode in range(options.episodes):
        simulator = simulators[episode % len(simulators)]
        load(host, simulator, episode)
        for line in ("open door to kitchen", "wait1"):
            host.call(simulator, ["step", line], TIMEOUT_S)
        if episode % (options.episodes // 10) == options.episodes // 10 - 1:
            resident.append(resident_mb(host.process.pid))
    half = len(resident) // 2
    growth = statistics.mean(resident[half:]) - statistics.mean(resident[:half])
    emit("leak/growth", round(growth, 1), "MB", episodes=options.episodes, resident_mb=resident)
    host.close()


def load(host: Server, simulator: int, number: int) -> None:
    """Load some task."""
    name = NAMES[number % len(NAMES)]
    host.call(simulator, ["load", name, str(number // len(NAMES) % 10), ""], TIMEOUT_S)


# ------------------------------------------------------------------------------ of the system


def resident_mb(pid: int) -> float:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return round(int(line.split()[1]) / 1024, 1)
    return 0.0


def cpu_seconds(pid: int) -> float:
    """CPU time of a process with its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def waiting_seconds(pid: int) -> float:
    """How long the threads of a process, all together, were ready to run and had no core."""
    files = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(file.read_text().split()[1]) for file in files) / 1e9


if __name__ == "__main__":
    main()
