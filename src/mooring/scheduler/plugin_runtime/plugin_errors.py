"""How often which plugin failed at which extension point: the metric beside the log line, the event and the condition.

Counted are calls that raise, return what the contract does not allow, or time out; a rejection is no error.
"""

from __future__ import annotations

import traceback

from mooring.base.errors import MooringError, PluginFault
from mooring.base.log import Log
from mooring.scheduler.metrics import PluginMetrics

NAME = "mooring_plugin_errors_total"
TRACE_VERBOSITY = 4

_log = Log("scheduler")


def details_of(problem: PluginFault) -> dict[str, str]:
    """For the log line about it: the line in the plugin's code, what to do, and at -v=4 the whole traceback."""
    details = {}
    if problem.raised_at is not None:
        details["at"] = problem.raised_at
    if problem.hint is not None:
        details["hint"] = problem.hint
    cause = problem.__cause__
    if cause is not None and not isinstance(cause, MooringError) and _log.v(TRACE_VERBOSITY):
        details["trace"] = _trace(cause)
    return details


def _trace(error: BaseException) -> str:
    """Where it was raised, and its causes. Without their messages, which may hold credentials."""
    parts: list[str] = []
    link: BaseException | None = error
    while link is not None:
        parts.insert(0, "".join(["Traceback (most recent call last):\n", *traceback.format_tb(link.__traceback__)]))
        parts[0] += type(link).__qualname__
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return "\n".join(parts)


def counted_errors(metrics: PluginMetrics) -> dict[tuple[str, str], int]:
    """How often each plugin has failed so far, by plugin and point."""
    totals = metrics.totals(NAME)
    return {(plugin, point): int(count) for (plugin, point), count in sorted(totals.items())}


class PluginErrors:
    """`mooring_plugin_errors_total`, by plugin and point. All instances count on the same metric."""

    def __init__(self, metrics: PluginMetrics) -> None:
        self._counter = metrics.counter(
            NAME,
            "Calls of a plugin that raised, timed out or returned an invalid value.",
            "plugin",
            "extension_point",
        )

    def note(self, plugin: str, point: str) -> None:
        self._counter.inc(plugin=plugin, extension_point=point)

    def count(self, problem: PluginFault) -> None:
        """A fault of a plugin; one that has no plugin (our own, or a preempted pod's) is not counted."""
        if problem.plugin and problem.point:
            self.note(problem.plugin, problem.point)
