"""The one runner: every call of a plugin's extension point goes through `calling`.

It sets the cycle's current plugin, times the call, and turns what the plugin raises into a `PluginFault` with
kube-scheduler's message.
"""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterable
from types import TracebackType

from mooring.base.errors import BudgetExceeded, MooringError, PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.engine.cycle import EngineCycle
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.pod_fields import largest_field
from mooring.engine.stopwatch import Run
from mooring.engine.time_budget import AttemptTimeout
from mooring.framework import Plugin, Refusal, Rejection
from mooring.framework.plugin_files import is_of_package


class calling:  # noqa: N801  # it reads as a verb: `with calling(cycle, plugin, ExtensionPoint.FILTER):`
    """Inside, the plugin runs; what it raises leaves as a fault. `switch_to` goes on to the point's next plugin."""

    __slots__ = ("_began", "_called", "_cycle", "_moments", "_point", "plugin")

    def __init__(self, cycle: EngineCycle, plugin: Plugin | None, point: ExtensionPoint) -> None:
        self._cycle = cycle
        self.plugin = plugin
        """What is raised now is raised by this one."""
        self._point = point
        self._called: list[str] | None = None
        self._moments: list[float] | None = None
        if (watch := cycle.watch) is not None:
            self._called, self._began = [], watch.now()
            self._moments = [] if watch.times_plugins else None

    def __enter__(self) -> calling:
        self._cycle.point = self._point
        if self.plugin is not None:
            self.switch_to(self.plugin)
        return self

    def switch_to(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self._cycle.plugin = name = plugin.name
        if self._called is not None:
            self._called.append(name)
            if self._moments is not None:
                self._moments.append(self._cycle.watch.now())  # type: ignore[union-attr]  # moments are read off it

    def switch_past(self, plugin: Plugin) -> None:
        """The plugin has been noted by `note_cached`, but runs all the same."""
        self.plugin = plugin
        self._cycle.plugin = plugin.name

    def note_cached(self, plugins: Iterable[str]) -> None:
        """The results of these plugins are cached: they count as called. Where plugins are timed, `switch_to` them."""
        if self._called is not None:
            self._called.extend(plugins)

    def restart(self) -> None:
        """The calls so far do not count: the point begins again."""
        if self._called is not None:
            self._called.clear()
            if self._moments is not None:
                self._moments.clear()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._called and (watch := self._cycle.watch) is not None:
            watch.runs.append(Run(self._point, self._called, self._moments or [], self._began, watch.now()))
        if error is None or isinstance(error, PluginFault):
            return
        if isinstance(error, AttemptTimeout):
            raise self._budget_exceeded(error) from None
        if not is_its_own(error):
            return
        assert self.plugin is not None, "no plugin was called"
        raised = fault(self.plugin, self._point, described(error))
        if not isinstance(error, MooringError):  # our own messages are complete
            raised.raised_at = line_of(error, type(self.plugin))
        raise raised from error

    def _budget_exceeded(self, error: AttemptTimeout) -> BudgetExceeded:
        plugin, budget = self.plugin, self._cycle.budget
        assert plugin is not None, "only a plugin's code is interrupted"
        assert budget is not None, "there is no interruption without a budget"
        message = f"{self._point.error_prefix(plugin.name)}{budget.overrun}"
        if field := largest_field(self._cycle.pod, plugin.pod_fields):
            message += f", evaluating {field}"
        exceeded = BudgetExceeded(plugin.name, message, self._point.metric_name)
        exceeded.is_of_volumes = plugin.binds_volumes
        exceeded.raised_at = line_of(error, type(plugin))
        budget.exceeded = budget.exceeded or exceeded
        return exceeded


def fault(plugin: Plugin, point: ExtensionPoint, what: str) -> PluginFault:
    """The fault that fails the attempt, and becomes the pod's event."""
    raised = PluginFault(plugin.name, point.error_prefix(plugin.name) + what, point.metric_name)
    raised.is_of_volumes = plugin.binds_volumes
    return raised


def check_reasons(plugin: Plugin, point: ExtensionPoint, refusal: Refusal) -> None:
    """Reasons are counted and joined: anything but text would fail later, without the plugin's name."""
    for reason in refusal.reasons:
        if not isinstance(reason, str):
            raise fault(plugin, point, f"a reason is {reason!r} ({type(reason).__name__}); it must be text")


def with_reasons(plugin: Plugin, point: ExtensionPoint, refusal: Refusal) -> Refusal:
    """The refusal, checked. Where it has no reason, the plugin's name is the reason: the message has no gap."""
    check_reasons(plugin, point, refusal)
    if refusal.reasons:
        return refusal
    if isinstance(refusal, Rejection):
        return Rejection(f"node(s) rejected by plugin {plugin.name} without a reason", code=refusal.code)
    return Refusal(f"plugin {plugin.name} refused without a reason", code=refusal.code)


def line_of(error: BaseException, cls: type[Plugin]) -> str | None:
    """Where in the plugin's own file, or in a helper beside it, an error came from."""
    try:
        file = inspect.getsourcefile(cls)
    except TypeError:  # defined without a file
        return None
    places = [
        f"{frame.f_code.co_filename}:{line}"
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == file or is_of_package(frame, cls.__module__)
    ]
    return places[-1] if places else None
