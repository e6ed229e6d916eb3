"""Every exception of the package, in one tree.

::

    AgentGymError
    ├── UnknownName (ValueError)        a name that is not in its list; near ones are suggested
    ├── InvalidTask (ValueError)        a task, a task file or a manifest that cannot be used
    ├── InvalidCorpus (ValueError)      passages, or an index of them, that cannot be used
    ├── InvalidRecord (ValueError)      an episode record that cannot be read
    ├── InvalidState (ValueError)       a saved state of another family, version or arguments
    ├── Unsupported                     a capability that this family or backend does not have
    ├── InvalidEvaluation (ValueError)  an evaluation that cannot be done or compared as asked
    ├── NoPlan                          the oracle found no way from the current state to the goal
    ├── PolicyStopped                   a policy ends its episode, as with a full context
    ├── PolicyFault (RuntimeError)      a policy could not be asked; never a reward
    ├── EnvFault (RuntimeError)         the world's infrastructure broke; never a reward
    │   └── WorkerFault                 a vector worker died, hung or answered nonsense
    └── CommandError (ValueError)       what a policy wrote cannot be done; becomes an observation
        └── FormatError                 the reply holds no command in the expected format

A policy's mistakes never leave an environment as exceptions: `CommandError` is caught by
`TextEnv.step` and answered in the observation. `EnvFault` does leave a single environment; the
vector environment turns it into a truncated step. Mistakes of the caller are `ValueError` or
`TypeError`, here or from Python itself.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Iterable


class AgentGymError(Exception):
    """The root of all errors raised by `agentgym_envs`."""


class UnknownName(AgentGymError, ValueError):
    """A level, split, task, format or other name that does not exist.

    Args:
        kind: what was looked up, as a noun: ``"level"``.
        name: what the caller gave.
        known: every valid name; near ones are put into the message.
        examples: whether there are more than those.
    """

    def __init__(
        self, kind: str, name: object, known: Iterable[str], *, examples: bool = False
    ) -> None:
        names = list(known)
        by_fold = {known_name.casefold(): known_name for known_name in names}
        near = difflib.get_close_matches(str(name).casefold(), by_fold, n=5, cutoff=0.5)
        if near:
            hint = "did you mean " + " or ".join(repr(by_fold[key]) for key in near) + "?"
        elif len(names) > 20:
            hint = f"there are {len(names)}, such as {', '.join(names[:3])}"
        elif examples:
            hint = f"valid are, for example, {', '.join(names[:5])}"
        else:
            hint = f"valid are {', '.join(names) or 'none'}"
        super().__init__(f"unknown {kind} {name!r}; {hint}")
        self.kind = kind
        self.name = name
        self._known, self._examples = names, examples

    def __reduce__(self) -> tuple[Callable[..., UnknownName], tuple[str, object, list[str]]]:
        remake = functools.partial(type(self), examples=self._examples)
        return remake, (self.kind, self.name, self._known)


class InvalidTask(AgentGymError, ValueError):
    """A task, task file or manifest that cannot be used."""


class InvalidCorpus(AgentGymError, ValueError):
    """A file of passages, or an index of one, that cannot be used."""


class InvalidRecord(AgentGymError, ValueError):
    """An episode record that cannot be read."""


class InvalidState(AgentGymError, ValueError):
    """A saved state that does not belong to this environment."""


class Unsupported(AgentGymError, NotImplementedError):
    """A capability that this family or backend does not have."""


class NoPlan(AgentGymError):
    """The oracle found no way from the current state to the goal, within its bounds."""


class InvalidEvaluation(AgentGymError, ValueError):
    """An evaluation that cannot be done as asked, or two that cannot be compared."""


class PolicyStopped(AgentGymError):
    """A policy ends its episode itself.

    Args:
        message: why.
        reason: how the episode ends: an `EndReason` that a driver may set.
    """

    def __init__(self, message: str, *, reason: str = "stopped") -> None:
        super().__init__(message)
        self.reason = reason


class PolicyFault(AgentGymError, RuntimeError):
    """What answers for a policy broke: a service was not reached or spoke nonsense.

    Args:
        message: what broke.
        retryable: whether another try may work.
    """

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class EnvFault(AgentGymError, RuntimeError):
    """The infrastructure of a world broke: a process died, a service did not answer.

    Args:
        message: what broke and what was being done.
        retryable: whether the same task may work on a fresh environment.
    """

    retryable: bool = True  # also in subclasses that forget to call the constructor

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        self.retryable = retryable


class WorkerFault(EnvFault):
    """A vector worker died, hung past its deadline or answered something that is no step."""


class CommandError(AgentGymError, ValueError):
    """A command that cannot be done. The text is the observation that the policy gets."""


class FormatError(CommandError):
    """A reply that holds no command in the expected action format."""
