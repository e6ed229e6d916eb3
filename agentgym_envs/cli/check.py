"""``check``: run the conformance kit; exit code 1 if a promise is broken."""

from __future__ import annotations

import argparse
import functools
import time

import gymnasium

from agentgym_envs.cli.environments import Figures, made
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import Unsupported
from agentgym_envs.testing import run_checks, wrapped


def check(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    arguments = dict(options.arg)
    with made(options.id, **arguments) as env:  # a wrong id or argument is no failed check
        _refuse_what_is_not_installed(env)
    bare = functools.partial(gymnasium.make, options.id, **arguments)
    start = time.perf_counter()
    names, failed = [], []
    for suffix, make in (("", bare), (" (wrapped)", wrapped(options.id, **arguments))):
        for result in run_checks(make):
            name = f"{result.name}{suffix}"
            names.append(name)
            if result.error:
                failed.append(name)
            verdict, text = ("FAIL", result.error) if result.error else ("ok", result.promise)
            print(f"{verdict:4} {name}: {' '.join(text.split())}", flush=True)
    seconds = round(time.perf_counter() - start, 2)
    print(f"{len(names) - len(failed)} of {len(names)} checks passed in {seconds} s")
    figures = {"id": options.id, "checks": len(names), "failed": failed, "seconds": seconds}
    return int(bool(failed)), figures


def _refuse_what_is_not_installed(env: TextEnv) -> None:
    try:
        env.reset(seed=0)
    except (ImportError, Unsupported):
        raise
    except Exception:  # the checks will say so
        return
