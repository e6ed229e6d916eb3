"""The programs in docs/curricula.md run as they stand, one after the other; its figures hold."""

import dataclasses
import re
from pathlib import Path

import pytest

from agentgym_envs.horizons import AdaptiveRules

PAGE = Path(__file__).parents[2] / "docs" / "curricula.md"


def test_the_examples_of_the_page_run():
    pytest.importorskip("minigrid")
    names: dict = {}
    programs = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(programs) == 6
    for program in programs:
        exec(compile(program, str(PAGE), "exec"), names)
        names.pop("envs", None)
        if "HorizonCurriculum(env" in program:
            assert names["env"].reset(seed=0)
            assert names["env"].unwrapped.horizon == 4
    assert names["info"]["task_id"].startswith(("babyai/train", "textcraft/train"))
    assert names["checkpoint"]["step"] == 2


def test_the_page_tells_the_default_of_every_rule():
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    told = {name: float(default) for name, default in rows}
    assert told == dataclasses.asdict(AdaptiveRules())
