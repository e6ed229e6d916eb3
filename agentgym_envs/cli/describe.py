"""``describe``: all about one id, and how an episode begins."""

from __future__ import annotations

import argparse
import json
import textwrap
from collections.abc import Mapping
from typing import Any

from agentgym_envs.actions import ACTION_FORMATS
from agentgym_envs.cli.docstrings import arguments_of, summary
from agentgym_envs.cli.environments import Figures, bare, counted, made, reset_options
from agentgym_envs.core import INFO_TYPES, TextEnv
from agentgym_envs.manifests import find_manifest
from agentgym_envs.tasks import SPLITS

_MOST_CATEGORIES = 12


def describe(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    arguments = dict(options.arg)
    with made(options.id, **arguments) as env:
        figures = {"id": options.id, **_of_class(type(bare(env))), **_of_env(env)}
        figures["example"] = _example(env, options)
    figures["splits"] = {
        split: _split(options.id, arguments | {"split": split}) for split in SPLITS
    }
    _show(figures)
    return 0, figures


def _of_class(env_class: type[TextEnv]) -> Figures:
    manifest = find_manifest(env_class)
    requested = {"admissible": list, "state_key": str, **env_class.extra_info_keys}
    return {
        "family": env_class.family,
        "version": env_class.version,
        "summary": summary(env_class),
        "arguments": {
            argument.name: {
                "type": argument.kind,
                "default": argument.default,
                "help": argument.help,
            }
            for argument in arguments_of(env_class)
        },
        "capabilities": sorted(env_class.capabilities),
        "rewards": {name: summary(reward) for name, reward in env_class.rewards.items()},
        "compat_modes": list(env_class.compat_modes),
        "action_formats": list(ACTION_FORMATS),
        "render_modes": list(env_class.metadata["render_modes"]),
        "info_keys": {name: kind.__name__ for name, kind in INFO_TYPES.items()},
        "info_keys_on_request": {
            name: kind.__name__
            for name, kind in requested.items()
            if name in env_class.capabilities or name in env_class.extra_info_keys
        },
        "deadlines": {
            "step_s": env_class.step_timeout_s,
            "reset_s": env_class.reset_timeout_s,
        },
        "agentgym_ids": f"{env_class.agentgym_name}_<number>" if env_class.agentgym_name else None,
        "certified": manifest and {split: manifest.splits[split].count for split in SPLITS},
        "certified_with": manifest and dict(manifest.arguments),
    }


def _of_env(env: TextEnv) -> Figures:
    return {
        "observation_space": repr(env.observation_space),
        "action_space": repr(env.action_space),
        "action_format": env.action_format,
        "instructions": env.instructions,
    }


def _split(env_id: str, arguments: Mapping[str, Any]) -> Figures:
    with made(env_id, **arguments) as env:
        return {"count": len(env.tasks), "categories": env.tasks.categories()}


def _example(env: TextEnv, options: argparse.Namespace) -> Figures:
    observation, info = env.reset(
        seed=options.seed or 0, options=reset_options(options.task, options.horizon)
    )
    return {
        "task": env.task.id,
        "horizon": env.horizon,
        "observation": observation,
        "info": info,
    }


def _show(figures: Figures) -> None:
    print(f"{figures['id']}: {figures['summary']}")
    print(f"\nfamily {figures['family']}, version {figures['version']}")
    for name in ("observation_space", "action_space", "action_format"):
        print(f"{name.replace('_', ' ')}: {figures[name]}")
    for name in ("action_formats", "capabilities", "compat_modes", "render_modes"):
        print(f"{name.replace('_', ' ')}: {', '.join(figures[name]) or 'none'}")
    deadlines = figures["deadlines"]
    print("deadlines in a vector: step {step_s:g} s, reset {reset_s:g} s".format(**deadlines))
    print(f"AgentGym's item ids: {figures['agentgym_ids'] or 'none'}")
    _show_list("Arguments, with their defaults", _arguments(figures["arguments"]))
    _show_list("Splits", {name: _sizes(split) for name, split in figures["splits"].items()})
    if figures["certified"]:
        whole = json.dumps(figures["certified_with"])
        print(f"  certified in all: {counted(figures['certified'])}, with the arguments {whole}")
    _show_list("Rewards", figures["rewards"])
    _show_list("Info, always", figures["info_keys"])
    _show_list("Info, on request", figures["info_keys_on_request"])
    print(f"\nInstructions:\n\n{figures['instructions']}")
    example = figures["example"]
    print(f"\nFirst observation of {example['task']}, horizon {example['horizon']}:\n")
    print(example["observation"])


def _show_list(title: str, lines: Mapping[str, str]) -> None:
    print(f"\n{title}:")
    for name, text in lines.items():
        print(
            textwrap.fill(f"{name}: {text}", 100, initial_indent="  ", subsequent_indent="      ")
        )


def _arguments(arguments: Mapping[str, Figures]) -> dict[str, str]:
    return {
        # A docstring names the default too: it is also read without the signature.
        f"{name} = {argument['default']!r}": argument["help"].removesuffix(
            f" Default {argument['default']!r}."
        )
        for name, argument in arguments.items()
    }


def _sizes(split: Figures) -> str:
    items = list(split["categories"].items())
    shown = ", ".join(f"{name} {count:,}" for name, count in items[:_MOST_CATEGORIES])
    more = f", … ({len(items)} categories)" if len(items) > _MOST_CATEGORIES else ""
    return f"{split['count']:,} {'task' if split['count'] == 1 else 'tasks'}: {shown}{more}"
