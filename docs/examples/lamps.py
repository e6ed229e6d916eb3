"""A world of one's own: lamps in a row, whose buttons switch the lamp to the right as well."""

import itertools

import gymnasium

from agentgym_envs import TextEnv
from agentgym_envs.actions import Command, Grammar, verb
from agentgym_envs.errors import CommandError
from agentgym_envs.outcomes import Outcome
from agentgym_envs.policies import PlannedPolicy
from agentgym_envs.tasks import ListSource, Task, TaskSet
from agentgym_envs.vector import vector_factory


@verb("press {number}", "push {number}")
def press(env: "LampsEnv", number: int) -> None:
    """Press a button: its lamp and the lamp to the right of it go on or off.

    Examples:
        press 2
    """
    if not 1 <= number <= env.count:
        raise CommandError(f"There is no button {number}; there are 1 to {env.count}.")
    env.off = switched(env.count, env.off, number)


@verb("look")
def look(env: "LampsEnv") -> None:
    """See which lamps are off.

    Examples:
        look
    """


def switched(count: int, off: set[int], number: int) -> set[int]:
    """Which of `count` lamps are off after button `number` was pressed."""
    return off ^ {place for place in (number, number + 1) if place <= count}


def num_presses(count: int, off: set[int]) -> int:
    """How many presses light all lamps: each sets the leftmost right for good."""
    return 1 + num_presses(count, switched(count, off, min(off))) if off else 0


def all_tasks() -> list[Task]:
    """Every state of three to seven lamps; of five, three are to train on."""
    splits = itertools.cycle(("train", "train", "train", "dev", "test"))
    tasks = []
    for count in range(3, 8):
        for row in itertools.product((True, False), repeat=count):
            off = [number for number, lit in enumerate(row, start=1) if not lit]
            if not off:
                continue
            split, presses = next(splits), num_presses(count, set(off))
            tasks.append(
                Task(
                    family="lamps",
                    id=f"lamps/{split}/{count}-{''.join(map(str, off))}",
                    split=split,
                    goal="switch all lamps on",
                    category=f"{count} lamps",
                    seed=None,
                    horizon=2 * presses + 2,
                    difficulty=presses,
                    payload={"count": count, "off": off},
                )
            )
    return tasks


class LampsEnv(TextEnv):
    """Lamps in a row, and a button at each."""

    family = "lamps"
    version = "0"
    capabilities = frozenset({"clone", "oracle", "admissible", "state_key"})
    count: int
    off: set[int]

    def _load_tasks(self) -> TaskSet:
        return TaskSet(ListSource([task for task in all_tasks() if task.split == self.split]))

    def _make_grammar(self) -> Grammar:
        return Grammar([press, look])

    def _rules(self) -> str:
        return "Lamps stand in a row, numbered from 1, each with a button. Switch all of them on."

    def _begin(self, task: Task) -> str:
        self.count, self.off = task.payload["count"], set(task.payload["off"])
        return f"Your goal: {task.goal}. There are {self.count}.\n{self._sight()}"

    def _execute(self, command: Command) -> Outcome:
        command.verb.run(self, **command.arguments)
        return Outcome.running(self._sight()) if self.off else Outcome.succeeded(self._sight())

    def _sight(self) -> str:
        return f"Off: {', '.join(map(str, sorted(self.off))) or 'none'}."

    def _make_oracle(self) -> PlannedPolicy:
        return PlannedPolicy(lambda: f"press {min(self.off)}", self.render_command)

    def _admissible(self) -> list[str]:
        return [*(f"press {number}" for number in range(1, self.count + 1)), "look"]

    def _state_key(self) -> str:
        return f"{self.count} {sorted(self.off)}"

    def _save_world(self) -> list[int]:
        return sorted(self.off)

    def _load_world(self, task: Task, state: list[int]) -> None:
        count = task.payload["count"]
        if not set(state) <= set(range(1, count + 1)):
            raise ValueError(f"there are {count} lamps, but {state!r} are off")
        self.count, self.off = count, set(state)


make_vector = vector_factory("Lamps-v0")

gymnasium.register(
    "Lamps-v0",
    entry_point=f"{__name__}:LampsEnv",
    vector_entry_point=f"{__name__}:make_vector",
    order_enforce=False,  # so that make() gives the bare environment
    disable_env_checker=True,
)
