"""Is a transcript of SciWorld the same wherever it is played, and the same as the official one?

``own`` plays one episode of each experiment (its gold actions, then commands drawn from the list of
valid ones, which is recorded too) in a Java process of its own, which is the reference; then among
31 others at the same time, in another process after 500 other episodes, and again in that one.
``official`` plays gold actions, and lines drawn from the list of valid ones, through the package's
official interface, each episode in a fresh Java process, and compares with ours as
``compat="agentgym"`` plays them, by the same rules. (`ScienceWorldEnv.step` asks for the list of
valid actions besides, which draws random numbers; that is left out.) An episode that differs is
played there once more with nothing changed but that objects hash by their ids: if that makes it
equal to ours, the order of hash sets was the cause.

    python benchmarks/sciworld_determinism.py own
    python benchmarks/sciworld_determinism.py official --variations 2
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from common import emit

from agentgym_envs.sciworld.backend import Server
from agentgym_envs.sciworld.experiments import NAMES, variations
from agentgym_envs.sciworld.java_runtime import HELPER_JAR
from agentgym_envs.sciworld.oracle import gold_of

NUM_OTHERS = 500
NUM_DRAWN = 10
NUM_DRAWN_OFFICIAL = 40
TIMEOUT_S = 300.0
KINDS = ("equal", "same words", "same scores and ending", "different scores or ending")


class Entry(NamedTuple):
    """What one step gave: text, score in hundredths, whether it ended."""

    line: str
    text: str
    score: int
    is_over: bool


Transcript = list[Entry]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["own", "official"])
    parser.add_argument("--variations", type=int, default=1, help="of each experiment")
    parser.add_argument("--experiments", nargs="*", default=list(NAMES))
    parser.add_argument("--others", type=int, default=NUM_OTHERS)
    parser.add_argument("--show", action="store_true", help="print the first difference of each")
    options = parser.parse_args()
    episodes = [
        (name, variations(name, "train")[number])
        for number in range(options.variations)
        for name in options.experiments
    ]
    if options.what == "own":
        own(episodes, options.others)
    else:
        official(episodes, options.show)


# --------------------------------------------------------------------------- ours against ours


def own(episodes: Sequence[tuple[str, int]], num_others: int) -> None:
    golds = [gold_of(name, variation, "") for name, variation in episodes]
    reference = []
    for episode, gold in zip(episodes, golds, strict=True):
        with served() as host:
            reference.append(play(host, *episode, gold))
    report("alone, twice", reference, [once(*args) for args in zip(episodes, golds, strict=True)])
    with served() as host, ThreadPoolExecutor(32) as threads:
        pairs = list(zip(episodes, golds, strict=True))
        jobs = [pairs[number % len(pairs)] for number in range(max(32, len(pairs)))]
        futures = [threads.submit(play, host, *episode, gold) for episode, gold in jobs]
        found = [future.result() for future in futures]
        report("among 31 others", reference, found[: len(episodes)])
    with served() as host:
        for number in range(num_others):
            name = NAMES[number % len(NAMES)]
            steps = gold_of(name, 0, "")[:5]
            play(host, name, number % 10, steps, num_drawn=0)
        found = [play(host, *args[0], args[1]) for args in zip(episodes, golds, strict=True)]
        report(f"after {num_others} episodes", reference, found)


def once(episode: tuple[str, int], gold: Sequence[str]) -> Transcript:
    with served() as host:
        return play(host, *episode, gold)


@contextlib.contextmanager
def served() -> Iterator[Server]:
    host = Server()
    try:
        yield host
    finally:
        host.close()


def play(
    host: Server, name: str, variation: int, gold: Sequence[str], num_drawn: int = NUM_DRAWN
) -> Transcript:
    """The transcript of an episode in a new simulator of `host`."""
    simulator = host.new_simulator()
    rng = generator(name, variation)
    look, description = host.call(simulator, ["load", name, str(variation), ""], TIMEOUT_S)
    transcript = [Entry("", f"{description}\n{look}", 0, False)]
    drawing = max(0, len(gold) - 1)
    for number in range(drawing + num_drawn + (num_drawn == 0)):
        if number < drawing or num_drawn == 0:
            if number >= len(gold):
                break
            line = gold[number]
        else:
            valid = host.call(simulator, ["valid"], TIMEOUT_S)
            transcript.append(Entry("valid", "\n".join(valid), 0, False))
            if not valid:
                break
            line = valid[int(rng.integers(len(valid)))]
        text, score, is_completed, *_ = host.call(simulator, ["step", line], TIMEOUT_S)
        transcript.append(Entry(line, text, round(100 * float(score)), is_completed == "true"))
    state = host.call(simulator, ["state"], TIMEOUT_S)[0]
    transcript.append(Entry("state", state, 0, False))
    host.drop(simulator)
    return transcript


def generator(name: str, variation: int) -> np.random.Generator:
    """Draws the same for the same episode."""
    seed = hashlib.sha256(f"{name} {variation}".encode()).digest()[:4]
    return np.random.default_rng(int.from_bytes(seed, "big"))


def report(name: str, expected: Sequence[Transcript], found: Sequence[Transcript]) -> None:
    differing = [one[1].text[:60] for one, two in zip(expected, found, strict=True) if one != two]
    emit(
        f"determinism/{name}",
        1 - len(differing) / len(expected),
        "share of episodes that are equal",
        episodes=len(expected),
        messages=sum(map(len, expected)),
        differing=differing,
    )


# ------------------------------------------------------------------- ours against the official


def official(episodes: Sequence[tuple[str, int]], show: bool) -> None:
    with served() as host:
        for kind, lines_of in (("gold actions", gold_lines), ("drawn actions", drawn_lines)):
            counts = dict.fromkeys(KINDS, 0)
            by_order: list[str] = []
            unexplained: list[str] = []
            for name, variation in episodes:
                lines = lines_of(host, name, variation)
                ours = say_all(host, name, variation, lines)
                theirs = play_official(name, variation, lines)
                found = compare(ours, theirs)
                counts[found] += 1
                if found == KINDS[0]:
                    continue
                is_order = ours == play_official(name, variation, lines, hash_by_id=True)
                (by_order if is_order else unexplained).append(f"{name} {variation}: {found}")
                if show:
                    print(f"{name} {variation}: {first_difference(ours, theirs)}", flush=True)
            emit(
                f"official/{kind}",
                counts[KINDS[0]] / len(episodes),
                "share of episodes that are equal",
                episodes=len(episodes),
                counts=counts,
                order_of_sets=by_order,
                unexplained=unexplained,
            )


def gold_lines(host: Server, name: str, variation: int) -> Sequence[str]:
    return gold_of(name, variation, "")


def drawn_lines(host: Server, name: str, variation: int) -> list[str]:
    """Lines drawn from those that are valid when they are played by the official rules."""
    simulator, rng = host.new_simulator(), generator(name, variation)
    host.call(simulator, ["load", name, str(variation), ""], TIMEOUT_S)
    lines: list[str] = []
    for _ in range(NUM_DRAWN_OFFICIAL):
        valid = host.call(simulator, ["valid"], TIMEOUT_S)
        lines.append(valid[int(rng.integers(len(valid)))])
        _, score, is_completed, *_ = host.call(simulator, ["say", lines[-1]], TIMEOUT_S)
        if is_completed == "true" or float(score) < 0:
            break
    host.drop(simulator)
    return lines


def say_all(host: Server, name: str, variation: int, lines: Sequence[str]) -> Transcript:
    """Our transcript by the official rules."""
    simulator = host.new_simulator()
    _, description = host.call(simulator, ["load", name, str(variation), ""], TIMEOUT_S)
    transcript = [Entry("", description, 0, False)]
    for line in lines:
        text, score, is_completed, *_ = host.call(simulator, ["say", line], TIMEOUT_S)
        transcript.append(Entry(line, text, round(100 * float(score)), is_completed == "true"))
    host.drop(simulator)
    return transcript


def play_official(
    name: str, variation: int, lines: Sequence[str], *, hash_by_id: bool = False
) -> Transcript:
    """The official transcript, from a fresh Java process.

    Args:
        name: of the experiment.
        variation: which.
        lines: to play.
        hash_by_id: let the simulator's objects hash by their ids, as ours do, and change nothing
            else.
    """
    from scienceworld import ScienceWorldEnv

    switches = f"-javaagent:{HELPER_JAR} -XX:+UnlockExperimentalVMOptions -XX:hashCode=2"
    os.environ["JAVA_TOOL_OPTIONS"] = switches if hash_by_id else ""
    try:
        env = ScienceWorldEnv()
    finally:
        del os.environ["JAVA_TOOL_OPTIONS"]
    try:
        env.load(name, variation, "")
        env.server.step("look around")  # which ours does when it loads
        transcript = [Entry("", env.get_task_description(), 0, False)]
        for line in lines:
            text = env.server.step(line)
            score = round(100 * env.server.getScore())
            transcript.append(Entry(line, text, score, env.server.getCompleted()))
        return transcript
    finally:
        env.close()


def compare(ours: Transcript, theirs: Transcript) -> str:
    if ours == theirs:
        return "equal"
    if [entry[2:] for entry in ours] != [entry[2:] for entry in theirs]:
        return KINDS[3]
    pairs = zip(ours, theirs, strict=True)
    same = all(sorted(one.text.split()) == sorted(two.text.split()) for one, two in pairs)
    return KINDS[1] if same else KINDS[2]


def first_difference(ours: Transcript, theirs: Transcript) -> str:
    for number, (one, two) in enumerate(zip(ours, theirs, strict=True)):
        if one != two:
            return f"step {number}{os.linesep}  ours   {one}{os.linesep}  theirs {two}"
    return ""


if __name__ == "__main__":
    main()
