"""The one runner: every call of a plugin's extension point goes through `asking`.

It tells the cycle which plugin speaks, and turns whatever the plugin raises into a `PluginFault` that names it, in
kube-scheduler's words.
"""

from __future__ import annotations

import inspect
import traceback
from types import TracebackType

from mooring.base.errors import BudgetExceeded, MooringError, PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.engine.cycle import EngineCycle
from mooring.engine.pod_fields import largest_field
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import Plugin, Refusal
from mooring.framework.plugin_files import is_of_package

PRE_FILTER = 'running PreFilter plugin "{}": '
FILTER = 'running "{}" filter plugin: '
POST_FILTER = 'running PostFilter plugin "{}": '
PRE_SCORE = 'running PreScore plugin "{}": '
SCORE = 'running Score plugins: plugin "{}" failed with: '
NORMALIZE = 'running Normalize on Score plugins: plugin "{}" failed with: '
WEIGHT = 'applying score defaultWeights on Score plugins: plugin "{}" '
RESERVE = 'running Reserve plugin "{}": '
UNRESERVE = 'running Unreserve plugin "{}": '
PERMIT = 'running Permit plugin "{}": '
PRE_BIND_PRE_FLIGHT = 'running PreBindPreFlight "{}": '
PRE_BIND = 'running PreBind plugin "{}": '
BIND = 'running Bind plugin "{}": '
POST_BIND = 'running PostBind plugin "{}": '


POINTS = {
    PRE_FILTER: "PreFilter",
    FILTER: "Filter",
    POST_FILTER: "PostFilter",
    PRE_SCORE: "PreScore",
    SCORE: "Score",
    NORMALIZE: "ScoreExtensionNormalize",
    WEIGHT: "Score",
    RESERVE: "Reserve",
    UNRESERVE: "Unreserve",
    PERMIT: "Permit",
    PRE_BIND_PRE_FLIGHT: "PreBindPreFlight",
    PRE_BIND: "PreBind",
    BIND: "Bind",
    POST_BIND: "PostBind",
}
"""Words → the point, as kube-scheduler's metrics name it."""


class asking:  # noqa: N801  # it reads as a verb: `with asking(cycle, plugin, FILTER):`
    """While inside, the plugin speaks; what it raises leaves as a fault.

    Where several are asked in turn, `turn_to` says who speaks next.
    """

    __slots__ = ("_cycle", "_now", "_plugin", "_turns", "_watch", "_words")

    def __init__(self, cycle: EngineCycle, plugin: Plugin | None, words: str) -> None:
        self._cycle = cycle
        self._plugin = plugin
        self._words = words
        self._watch = watch = cycle.watch
        self._turns: list[tuple[str, float]] | None = None
        if watch is not None:
            self._turns, self._now = [], watch.now

    def __enter__(self) -> asking:
        if self._plugin is not None:
            self.turn_to(self._plugin)
        return self

    def turn_to(self, plugin: Plugin) -> None:
        self._plugin = plugin
        self._cycle.speaker = name = plugin.name
        if self._turns is not None:
            self._turns.append((name, self._now()))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._watch is not None and self._turns:
            self._watch.runs.append((self._words, self._turns, self._now()))
        if error is None or isinstance(error, PluginFault):
            return
        if isinstance(error, AttemptTimeout):
            raise self._budget_exceeded(error) from None
        if not is_its_own(error):
            return
        assert self._plugin is not None, "nobody was asked"
        raised = fault(self._plugin, self._words, described(error))
        if not isinstance(error, MooringError):  # our own say all there is to say
            raised.raised_at = line_of(error, type(self._plugin))
        raise raised from error

    def _budget_exceeded(self, error: AttemptTimeout) -> BudgetExceeded:
        plugin, budget = self._plugin, self._cycle.budget
        assert plugin is not None, "only a plugin's code is interrupted"
        assert budget is not None, "there is no interruption without a budget"
        message = f"{self._words.format(plugin.name)}{budget.overrun}"
        if field := largest_field(self._cycle.pod, plugin.pod_fields):
            message += f", evaluating {field}"
        exceeded = BudgetExceeded(plugin.name, message, POINTS[self._words])
        exceeded.raised_at = line_of(error, type(plugin))
        budget.exceeded = budget.exceeded or exceeded
        return exceeded


def fault(plugin: Plugin, words: str, what: str) -> PluginFault:
    """What the pod's event will say."""
    return PluginFault(plugin.name, words.format(plugin.name) + what, POINTS[words])


def check_reasons(plugin: Plugin, words: str, refusal: Refusal) -> None:
    """Reasons are counted, joined and shown: anything but text would break later, where nobody knows whose it was."""
    for reason in refusal.reasons:
        if not isinstance(reason, str):
            raise fault(plugin, words, f"a reason is {reason!r} ({type(reason).__name__}); it must be text")


def line_of(error: BaseException, cls: type[Plugin]) -> str | None:
    """Where in the plugin's own file, or in a helper beside it, an error came from."""
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:  # made on the spot: it has none
        return None
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file or is_of_package(frame, cls.__module__)
    ]
    return places[-1] if places else None
