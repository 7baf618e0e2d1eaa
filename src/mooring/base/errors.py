"""Every exception Mooring raises on purpose.

    MooringError
    ├── OperatorMistake     wrong input; reported whole, exit code 2
    ├── Fault               something broke while working; exit code 1 if it ends the program
    │   ├── ApiError        an API server responded with an error (its code, reason and message)
    │   ├── Unreachable     an API server did not respond at all
    │   └── PluginFault a plugin raised or returned an invalid value; fails one attempt, never the scheduler
    │       └── BudgetExceeded  a plugin computed too long about one pod; the pod is set aside
    └── StateMissing        a plugin read what its pre_filter or pre_score did not leave

A verdict ("no node fits") is a value, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches


class MooringError(Exception):
    """The root; catch it only at the very top."""


@dataclass(frozen=True)
class Problem:
    """One mistake: where it is, and what would be right."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        where = f"{self.path} (line {self.line})" if self.line is not None else self.path
        return f"  {where}\n    {self.message}"


class OperatorMistake(MooringError):
    """What the operator gave us is wrong. Carries every problem at once."""

    def __init__(self, summary: str, problems: Sequence[Problem] = ()) -> None:
        self.summary = summary
        self.problems = tuple(problems)
        super().__init__("\n\n".join([summary, *map(str, self.problems)]))

    @classmethod
    def found_in(cls, source: str, problems: Sequence[Problem]) -> OperatorMistake:
        """`source has 3 problems.`, and all of them."""
        return cls(f"{source} has {len(problems)} problem{'s' if len(problems) != 1 else ''}.", problems)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """` Did you mean "x"?`, or nothing where no known name is near. Case and `_` do not count."""
    names = {folded(each): each for each in known}
    near = get_close_matches(folded(name), names, n=1)
    return f' Did you mean "{names[near[0]]}"?' if near else ""


def folded(name: str) -> str:
    """The name without case and underscores."""
    return name.replace("_", "").lower()


class Fault(MooringError):
    """Something broke that is not the operator's input."""


class ApiError(Fault):
    """An API server responded with an error: the fields of its `Status`."""

    def __init__(self, code: int, reason: str, message: str, *, retry_after: float | None = None) -> None:
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        super().__init__(message)


class Unreachable(Fault):
    """An API server does not respond; the message names the host and where its address came from."""


class PluginFault(Fault):
    """A plugin raised or returned an invalid value. The message is that of the pod's event."""

    def __init__(self, plugin: str, message: str, point: str = "") -> None:
        self.plugin = plugin
        self.point = point
        """The extension point, as kube-scheduler's metrics name it."""
        self.is_of_volumes = False
        """The plugin binds volumes: counted by `volume_scheduling_stage_error_total`."""
        self.raised_at: str | None = None
        """File and line in the plugin's own code, if it raised: for the log. Events have no use for it."""
        self.hint: str | None = None
        """What its author could do about it: for the log and `mooring explain`."""
        super().__init__(message)


class BudgetExceeded(PluginFault):
    """A plugin was interrupted because the attempt exceeded its time budget."""


class StateMissing(MooringError):
    """The plugin's pre_filter or pre_score left no state for this cycle (not run, or it returned Skip)."""
