"""A world that does to its process whatever can go wrong with one, when told to."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from counting import Counter, CountingEnv

from agentgym_envs.actions import verb
from agentgym_envs.errors import EnvFault


class OddFault(EnvFault):
    """Cannot be unpickled: its arguments are not those of its base."""

    def __init__(self, place: str, depth: int) -> None:
        super().__init__(f"fell {depth} m into {place}", retryable=False)


class Mumbled(Exception):
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


GONE = EnvFault("the wall is gone for good")


@verb("die")
def die(world: Counter) -> str:
    """What the kernel does when memory runs out.

    Examples:
        die
    """
    os.kill(os.getpid(), signal.SIGKILL)
    return ""


@verb("signal {number}")
def send_signal(world: Counter, number: int) -> str:
    """Die of a signal.

    Examples:
        signal 6
    """
    os.kill(os.getpid(), number)
    return ""


@verb("flee")
def flee(world: Counter) -> str:
    """Leave the process group that is killed with this process, and hang.

    Examples:
        flee
    """
    os.setpgid(0, os.getpgid(os.getppid()))
    time.sleep(600)
    return ""


@verb("breed")
def breed(world: Counter) -> str:
    """Fork a process that keeps everything open that this one has open.

    Examples:
        breed
    """
    if os.fork() == 0:
        time.sleep(600)
        os._exit(0)
    return "It grows."


@verb("mumble")
def mumble(world: Counter) -> str:
    """Raise what has no message.

    Examples:
        mumble
    """
    raise Mumbled


@verb("repeat")
def repeat(world: Counter) -> str:
    """Raise the same object each time.

    Examples:
        repeat
    """
    raise GONE


@verb("exit")
def exit_process(world: Counter) -> str:
    """End the process.

    Examples:
        exit
    """
    os._exit(3)


@verb("leave")
def leave(world: Counter) -> str:
    """End the program.

    Examples:
        leave
    """
    sys.exit("bye")


@verb("babble")
def babble(world: Counter) -> str:
    """Write nonsense to every socket.

    Examples:
        babble
    """
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                os.write(int(name), b"\xff" * 64)
        except OSError:
            continue
    return "You babble."


@verb("shout")
def shout(world: Counter) -> str:
    """Write to stdout in every way.

    Examples:
        shout
    """
    sys.stdout.write("hey!\n")
    sys.stdout.flush()
    os.write(1, b"hey!\n")
    subprocess.run(["echo", "hey!"], check=True)
    return "You shout."


@verb("eat {megabytes}")
def eat(world: Counter, megabytes: int) -> str:
    """Use memory.

    Examples:
        eat 100
    """
    food = []
    for _ in range(0, megabytes, 10):
        food.append(b"x" * (10 << 20))
        time.sleep(0.01)
    world.labels["food"] = str(len(food))
    return "You eat."


@verb("nap {milliseconds}")
def nap(world: Counter, milliseconds: int) -> str:
    """Answer late.

    Examples:
        nap 10
    """
    time.sleep(milliseconds / 1000)
    return "You wake up."


@verb("brood")
def brood(world: Counter) -> str:
    """Hang in native code that keeps Python's lock.

    Examples:
        brood
    """
    re.match(r"(a+)+$", "a" * 60 + "b")
    return "You are wise."


@verb("hatch")
def hatch(world: Counter) -> str:
    """Start a process that outlives its parent.

    Examples:
        hatch
    """
    subprocess.Popen(["sleep", "600"])
    return "It hatches."


@verb("stumble")
def stumble(world: Counter) -> str:
    """Raise a fault that cannot be unpickled.

    Examples:
        stumble
    """
    raise OddFault("a pit", depth=3)


@verb("ruin")
def ruin(world: Counter) -> str:
    """Break what cannot be mended.

    Examples:
        ruin
    """
    raise EnvFault("the task is gone from the shelf", retryable=False)


@verb("read {count} pages")
def read(world: Counter, count: int) -> str:
    """A long text.

    Examples:
        read 3 pages
    """
    return "\u2603 page " * 1000 * count


class PerilousEnv(CountingEnv):
    """Deadly when told to.

    Args:
        diary: a file that gets a line for each reset and close.
        sulks: a file; while it exists, resets raise a fault.
        broken: a file; while it exists, no environment can be built.
        close_s: how long closing takes.
    """

    verbs = (
        *CountingEnv.verbs, die, send_signal, flee, breed, exit_process, leave, babble, shout, eat,
        nap, brood, hatch, mumble, repeat, stumble, ruin, read,
    )  # fmt: skip

    def __init__(
        self,
        *,
        diary: str = "",
        sulks: str = "",
        broken: str = "",
        close_s: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if broken and Path(broken).exists():
            raise OSError("no space left on the wall")
        super().__init__(**kwargs)
        self._diary, self._sulks, self._close_s = diary, sulks, close_s

    @property
    def pid(self) -> int:
        return os.getpid()

    def reset(self, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        self._note("reset")
        if self._sulks and Path(self._sulks).exists():
            raise EnvFault("the wall is gone")
        return super().reset(**kwargs)

    def close(self) -> None:
        time.sleep(self._close_s)
        self._note("close")

    def _note(self, word: str) -> None:
        if self._diary:
            with open(self._diary, "a", encoding="utf-8") as file:
                file.write(f"{word}\n")


class SecretInfo(CountingEnv):
    """After a step, `info` holds what cannot be pickled."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        *numbers, info = super().step(action)
        return (*numbers, info | {"secret": threading.Lock()})  # type: ignore[return-value]


class Hasty(PerilousEnv):
    """Names deadlines of its own."""

    step_timeout_s = 0.4
    reset_timeout_s = 20.0
