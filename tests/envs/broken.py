"""Environments that each break one promise of the contract; the conformance kit must notice.

The docstring of each class says which check must fail, and a part of what it must say.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import ClassVar

import numpy as np
from counting import BareEnv, CountingEnv
from gymnasium.envs.registration import EnvSpec

from agentgym_envs.actions import verb
from agentgym_envs.core import TextEnv
from agentgym_envs.errors import CommandError
from agentgym_envs.outcomes import Outcome
from agentgym_envs.policies import ScriptedPolicy
from agentgym_envs.tasks import ListSource, TaskSet


def spec_of(env_class: type[TextEnv]) -> EnvSpec:
    return EnvSpec(
        f"Test/{env_class.__name__}-v0",
        entry_point=f"broken:{env_class.__name__}",
        kwargs=getattr(env_class, "spec_kwargs", {}),
        order_enforce=False,
        disable_env_checker=True,
    )


class Warns(CountingEnv):
    """check_gymnasium: non-deterministic"""

    def _begin(self, task):
        return super()._begin(task) + f" It is {time.perf_counter_ns()}."


class AddsClock(CountingEnv):
    """check_info: info of turn 0"""

    def _info(self, **kwargs):
        return super()._info(**kwargs) | {"time": 3.5}


class NumpyScore(CountingEnv):
    """check_info: info of turn"""

    def _info(self, **kwargs):
        info = super()._info(**kwargs)
        return info | {"score": np.float64(info["score"])}


class CountsEveryError(CountingEnv):
    """check_info: info['format_errors'] of turn"""

    def _info(self, **kwargs):
        return super()._info(**kwargs) | {"format_errors": 2 * self._format_errors}


class CallsHalfASuccess(CountingEnv):
    """check_info: success"""

    def _info(self, **kwargs):
        info = super()._info(**kwargs)
        return info | {"success": info["score"] >= 0.5}


class HidesGoal(CountingEnv):
    """check_observations: the goal 'Make the counter show 3, then say done.' is not in"""

    def _begin(self, task):
        super()._begin(task)
        return "The counter shows 0."


class LeaksSurrogates(CountingEnv):
    """check_observations: Not in space"""

    def _clean(self, observation):
        return observation + "\ud800"


class ReusesInfo(CountingEnv):
    """check_fresh_objects: after an info was changed"""

    def _info(self, **kwargs):
        self._kept = getattr(self, "_kept", [])
        self._kept += [] if self._kept else super()._info(**kwargs)["admissible"]
        return super()._info(**kwargs) | {"admissible": self._kept}

    def _check_info_keys(self, info_keys):
        return super()._check_info_keys([*{*info_keys, "admissible"}])


class TruncatesLate(CountingEnv):
    """check_horizon: the ends"""

    def reset(self, **kwargs):
        result = super().reset(**kwargs)
        self._horizon += 1
        return result

    @property
    def horizon(self):
        return self._horizon - 1


class GoesOnForever(CountingEnv):
    """check_order: after the end must raise ResetNeeded"""

    def step(self, action):
        result = super().step(action)
        self._end_reason = type(self._end_reason)("")
        return result


class TakesAnyTask(CountingEnv):
    """check_reset_errors: took the unknown task"""

    def _resolve_task(self, name):
        return self.tasks[name if name in self.tasks else 0]


class SuggestsNothing(CountingEnv):
    """check_reset_errors: suggests no task"""

    def _load_tasks(self):
        class Silent(ListSource):
            def near_ids(self, task_id):
                return ()

        return TaskSet(Silent(list(super()._load_tasks())))


class KeepsOldEpisode(CountingEnv):
    """check_reset_errors: after a reset that failed must raise ResetNeeded"""

    def reset(self, **kwargs):
        old = self._task
        try:
            return super().reset(**kwargs)
        except Exception:
            self._task = old
            raise


class TakesAnyReward(CountingEnv):
    """check_arguments: reward='no such name' must raise UnknownName; it raised nothing"""

    def __init__(self, *, reward="default", **kwargs):
        super().__init__(reward=reward if reward in self.rewards else "default", **kwargs)


class HasMoreThanItSays(BareEnv):
    """check_capabilities: state_key() without 'state_key' must raise Unsupported"""

    def state_key(self):
        return "0"


class RepeatsTrainingTasks(CountingEnv):
    """check_tasks: In 'train' and 'dev'"""

    def _load_tasks(self):
        stolen = [CountingEnv().tasks[0]] if self.split == "dev" else []
        return TaskSet(ListSource([*super()._load_tasks(), *stolen]))


class WantsTuples(CountingEnv):
    """check_spec: the spec after JSON"""

    spec_kwargs: ClassVar = {"info_keys": ("admissible",)}


class MovesWhenSeen(CountingEnv):
    """check_render: the transcript while rendering"""

    def _render_ansi(self):
        self.world.value += 1
        return super()._render_ansi()


class DrawsGray(CountingEnv):
    """check_render: A picture is uint8"""

    def _render_rgb_array(self):
        return np.zeros((4, 4), dtype=np.uint8)


@verb("jump {height}")
def jump(world, height: int):
    """Jump.

    Examples:
        jump high
    """


class TeachesWrongWords(CountingEnv):
    """check_action_formats: "jump high" is not a command"""

    verbs: ClassVar = (*CountingEnv.verbs, jump)


class PrefersOneFormat(CountingEnv):
    """check_action_formats: what commands do in 'json'"""

    def _execute(self, command):
        outcome = super()._execute(command)
        if self.action_format == "json":
            return Outcome.running(f"{outcome.observation} Thanks.", outcome.score)
        return outcome


class ExplainsNothing(CountingEnv):
    """check_instructions: do not mention 'add'"""

    def _rules(self):
        return "You have a counter."

    @property
    def instructions(self):
        return self._rules()


class FearsNul(CountingEnv):
    """check_hostile_text: embedded null"""

    def step(self, action):
        if "\0" in action:
            raise ValueError("embedded null")
        return super().step(action)


class ForgivesSilence(CountingEnv):
    """check_hostile_text: the turn after '' (0 characters)"""

    def step(self, action):
        self._turn -= not action
        return super().step(action)


class RepeatsEverything(CountingEnv):
    """check_hostile_text: (100000 characters)"""

    def _refuse(self, error):
        return f"{error} {self._heard}"

    def step(self, action):
        self._heard = action
        return super().step(action)


class MovesWhenRefusing(CountingEnv):
    """check_hostile_text: the state after"""

    def _refuse(self, error):
        self.world.value += 1
        return super()._refuse(error)


class Hangs(CountingEnv):
    """check_hostile_text: 40000 characters: 'next to next to"""

    def step(self, action):
        if "next to next to" in action:
            time.sleep(60)
        return super().step(action)


class SharesState(CountingEnv):
    """check_fresh_instances: in a fresh environment"""

    resets: ClassVar[int] = 0

    def _begin(self, task):
        SharesState.resets += 1
        return super()._begin(task) + f" Game {SharesState.resets}."


class DrawsDifferently(CountingEnv):
    """check_drawn_tasks: the random state by name"""

    def _choose_task(self, wanted):
        if wanted is None:
            self.np_random.random()
        return super()._choose_task(wanted)


class SharesStateAcrossThreads(CountingEnv):
    """check_threads: in one of four threads"""

    def _begin(self, task):
        main = threading.current_thread() is threading.main_thread()
        return super()._begin(task) + ("" if main else " Hello.")


class DependsOnHashes(CountingEnv):
    """check_processes: with PYTHONHASHSEED="""

    def _begin(self, task):
        return super()._begin(task) + " ".join({f"word{number}" for number in range(20)})


class Prints(CountingEnv):
    """check_silence: It writes: 'hello"""

    def _begin(self, task):
        sys.stdout.write("hello\n")
        return super()._begin(task)


class ForgetsLabels(CountingEnv):
    """check_save_load: counting/train/"""

    def _load_world(self, task, state):
        super()._load_world(task, state)
        self.world.labels.clear()
        self.world.value += bool(state[1])


class KeepsTheGoalBefore(CountingEnv):
    """check_save_load: the goal, counting/train/"""

    def _begin(self, task):
        self._goal = task.goal
        return super()._begin(task)

    @property
    def goal(self):
        return self._goal


class TakesAnyState(CountingEnv):
    """check_state_refusals: load_state() of another family must raise InvalidState"""

    def load_state(self, state):
        mine = vars(self).pop("family", None)
        try:
            super().load_state(state)
        finally:
            if mine:
                self.family = mine


class BreaksOnBadStates(CountingEnv):
    """check_state_refusals: must raise InvalidState; it raised JSONDecodeError"""

    def load_state(self, state):
        json.loads(state)
        super().load_state(state)


class ClonesShallowly(CountingEnv):
    """check_clone: after its clone"""

    def clone(self):
        twin = super().clone()
        twin.world = self.world
        return twin


class CountsTurnsInKeys(CountingEnv):
    """check_state_key: the key after a refused reply"""

    def _state_key(self):
        return f"{super()._state_key()} {self._turn}"


class HasOneKey(CountingEnv):
    """check_state_key: Every state has the same key"""

    def _state_key(self):
        return "0"


class GivesUp(CountingEnv):
    """check_oracle: It ends with 'failure'"""

    def _make_oracle(self):
        return ScriptedPolicy(["done"])


class ListsTooMuch(CountingEnv):
    """check_admissible: 'take away 9' is refused"""

    def _admissible(self):
        return [*super()._admissible(), "take away 9"]


class ListsAtRandom(CountingEnv):
    """check_admissible: admissible() in another instance"""

    asked: ClassVar[int] = 0

    def _admissible(self):
        ListsAtRandom.asked += 1
        commands = super()._admissible()
        return commands if ListsAtRandom.asked % 2 else commands[::-1]


class PaysTwice(CountingEnv):
    """check_rewards: add up to"""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward * 2, *rest


class PaysForNoise(CountingEnv):
    """check_rewards: Refused replies get rewards"""

    def step(self, action):
        *head, info = super().step(action)
        head[1] += 0.1 * (not info["action_valid"])
        return *head, info


class PaysIntegers(CountingEnv):
    """check_rewards: 'default' gives"""

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, round(reward), *rest


class KnowsItsThread(CountingEnv):
    """check_text_vector: with threads workers"""

    def _execute(self, command):
        if threading.current_thread() is not threading.main_thread():
            raise CommandError("Not here.")
        return super()._execute(command)


class KnowsItsProcess(CountingEnv):
    """check_stock_vector: two positions differ"""

    def _begin(self, task):
        return super()._begin(task) + f" You are {os.getpid()}."
