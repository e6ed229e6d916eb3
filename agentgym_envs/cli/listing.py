"""``list``: which ids there are, how many tasks they have, and what they can do.

Sizes are those of the manifest, which counts every certified task, and beside them those of the
default arguments, which may choose fewer.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from agentgym_envs.cli.environments import Figures, bare, counted, made
from agentgym_envs.errors import Unsupported
from agentgym_envs.manifests import find_manifest
from agentgym_envs.registration import registered_ids
from agentgym_envs.tasks import SPLITS


def list_families(options: argparse.Namespace) -> tuple[int, Figures]:
    """Run the command."""
    families = []
    for env_id in registered_ids():
        try:
            family = _summary(env_id)
        except (ImportError, Unsupported) as error:
            family = {"id": env_id, "error": str(error)}
        print(_line(family))
        families.append(family)
    return 0, {"families": families}


def sizes(env_id: str, arguments: Mapping[str, Any]) -> dict[str, int]:
    """Number of tasks by split."""
    found = {}
    for split in SPLITS:
        with made(env_id, **{**arguments, "split": split}) as env:
            found[split] = len(env.tasks)
    return found


def _summary(env_id: str) -> Figures:
    with made(env_id) as env:
        capabilities = sorted(env.capabilities)
        manifest = find_manifest(type(bare(env)))
    splits = sizes(env_id, {})
    certified = manifest and {split: manifest.splits[split].count for split in manifest.splits}
    return {
        "id": env_id,
        "splits": splits,
        "certified": {split: certified[split] for split in SPLITS} if certified else None,
        "certified_with": dict(manifest.arguments) if manifest else None,
        "capabilities": capabilities,
    }


def _line(family: Figures) -> str:
    if "error" in family:
        return f"{family['id']}: not installed: {family['error']}"
    text = f"{family['id']}: tasks {counted(family['splits'])}"
    if family["certified"] and family["certified"] != family["splits"]:
        whole = json.dumps(family["certified_with"])
        text += f" by default, {counted(family['certified'])} with {whole}"
    return f"{text}; can {', '.join(family['capabilities']) or 'nothing'}"
