"""Keeps the measured load of nodes up to date, beside the scheduling: a decision reads what was published last.

Measurements are fetched every 30 seconds. When that fails, the last ones count until they are stale; then every node
counts alike. Whether they are fresh is shown by metrics, and by a log line and an event when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mooring.base.clock import Clock, timestamp
from mooring.base.errors import Fault
from mooring.framework import Background, Log, Metrics, ProblemReports, Published
from mooring.plugins.community.trimaran.load_checks import NothingCounts
from mooring.plugins.community.trimaran.load_sources import LoadSource
from mooring.plugins.community.trimaran.loads import (
    AHEAD,
    AHEAD_SECONDS,
    IMPOSSIBLE,
    NO_LOADS,
    STALE,
    STALE_SECONDS,
    Loads,
    NodeProblem,
)

REFRESH_SECONDS = 30.0
MOST_OF_CAUSE = 300

FAILED, UNKNOWN_NODES, RECOVERED = "LoadSourceFailed", "LoadSourceHasUnknownNodes", "LoadSourceRecovered"
NODE_EVENTS = {
    IMPOSSIBLE: ("ImpossibleNodeLoad", "reports a load of this node that is impossible"),
    STALE: ("StaleNodeLoad", f"has measured this node more than {STALE_SECONDS / 60:.0f} minutes ago"),
    AHEAD: ("FutureNodeLoad", f"has measured this node more than {AHEAD_SECONDS:.0f} s from now; check its clock"),
}
"""By cause: the reason of the event on the node, and what the source did."""


class LoadCollector:
    """Fetches measurements for one plugin."""

    def __init__(
        self,
        plugin: str,
        source: LoadSource,
        loads: Published[Loads],
        background: Background,
        metrics: Metrics,
        log: Log,
        clock: Clock,
        problems: ProblemReports,
        *,
        keeps_stale: bool,
    ) -> None:
        """`keeps_stale`: measurements count for ever, as in scheduler-plugins."""
        self._plugin, self._source, self._loads, self._background = plugin, source, loads, background
        self._log, self._clock, self._events, self._keeps_stale = log, clock, problems, keeps_stale
        self._is_up: bool | None = None
        """Whether the last fetch brought fresh measurements; None before the first."""
        self._refreshes = metrics.counter("load_refreshes_total", "Fetches of node loads.", "plugin", "result")
        self._up = metrics.gauge("load_source_up", "Whether the last fetch succeeded with fresh data.", "plugin")
        self._known = metrics.gauge("load_nodes", "Nodes whose load counts; 0: all count alike.", "plugin")
        self._problems = ""
        """The last that were logged."""
        self._rejected = metrics.gauge(
            "load_source_has_rejected_measurements",
            "Whether some measurements of the last fetch do not count.",
            "plugin",
        )
        self._age = metrics.gauge("load_age_seconds", "How long ago the last measurements ended.", "plugin")

    def start(self) -> None:
        self._background.every(REFRESH_SECONDS, self._refresh)
        # A task of its own, because a refresh may be waiting for a response when the last measurements turn stale.
        self._background.every(REFRESH_SECONDS / 2, self._drop_stale)

    async def _refresh(self) -> None:
        try:
            loads = await self._source.fetch()
        except NothingCounts as error:
            self._report_nodes(error.node_problems)
            self._failed(str(error))
            return
        except (Fault, OSError, ValueError) as error:
            self._failed(str(error))
            return
        age = self._clock.now() - loads.window_end
        if age < -AHEAD_SECONDS and not self._keeps_stale:
            self._failed(f"the measurements of {self._source.address} end {-age:.0f} s from now; check its clock")
            return
        if age > STALE_SECONDS and not self._keeps_stale:
            self._failed(f"the measurements of {self._source.address} ended {age:.0f} s ago")
            return
        until = timestamp(loads.window_end) if age < STALE_SECONDS else "long ago"
        about = f"loads of {len(loads.nodes)} nodes, measured until {until}, from {self._source.address}"
        self._loads.publish(loads, about=about)
        self._report_problems(loads.problems)
        self._report_nodes(loads.node_problems)
        self._report_source(loads)
        self._refreshes.inc(plugin=self._plugin, result="success")
        self._up.set(1, plugin=self._plugin)
        self._known.set(len(loads.nodes), plugin=self._plugin)
        self._age.set(age, plugin=self._plugin)
        if not self._is_up:
            self._is_up = True
            self._log.info("Node loads are known", nodes=len(loads.nodes))

    def _report_problems(self, problems: str) -> None:
        """Logged when they change; the numbers in them vary at each fetch."""
        self._rejected.set(1 if problems else 0, plugin=self._plugin)
        if bool(problems) != bool(self._problems):
            if problems:
                self._log.warning(
                    "Some measurements of node loads do not count", source=self._source.address, why=problems
                )
            else:
                self._log.info("All measurements of node loads count again", source=self._source.address)
        self._problems = problems

    def _report_nodes(self, problems: Iterable[NodeProblem]) -> None:
        events = {}
        for node, cause in problems:
            reason, what = NODE_EVENTS[cause]
            events[node, reason] = f"{self._plugin}: {self._source.address} {what}; that does not count"
        self._events.on_nodes(events)

    def _report_source(self, loads: Loads) -> None:
        """It responds; perhaps it reports of another cluster."""
        source = f"{self._plugin}: {self._source.address}"
        if loads.unknown_node:
            self._events.failing(
                UNKNOWN_NODES, f"{source} reports nodes that do not exist, such as {loads.unknown_node}; others count"
            )
        else:
            self._events.recovered(RECOVERED, f"{source} reports node loads that count again")

    def _failed(self, why: str) -> None:
        """Logged once per outage, and each time at -v=4."""
        self._refreshes.inc(plugin=self._plugin, result="failure")
        self._up.set(0, plugin=self._plugin)
        log = self._log.v(4) if self._is_up is False else self._log
        self._is_up = False
        going_on = "the last ones count" if self._has_loads else "every node counts alike"
        if self._loads.latest is None:  # so that explain shows why decisions had none
            self._loads.publish(NO_LOADS, about=f"no loads: {why[:MOST_OF_CAUSE]}")
            self._known.set(0, plugin=self._plugin)
        self._events.failing(FAILED, f"{self._plugin}: node loads cannot be fetched; {going_on}: {why[:MOST_OF_CAUSE]}")
        log.warning(f"Node loads cannot be fetched; {going_on}", source=self._source.address, err=why)

    async def _drop_stale(self) -> None:
        latest = self._loads.latest
        if latest is None or not latest.nodes:
            return
        age = self._clock.now() - latest.window_end
        self._age.set(age, plugin=self._plugin)
        if age > STALE_SECONDS and not self._keeps_stale:
            about = f"no loads: the last were measured until {timestamp(latest.window_end)} and are stale"
            self._loads.publish(NO_LOADS, about=about)
            self._known.set(0, plugin=self._plugin)
            stale = f"the last node loads of {self._source.address} are stale; every node counts alike"
            self._events.failing(FAILED, f"{self._plugin}: {stale}")
            self._log.warning("The last node loads are stale; every node counts alike", seconds=int(age))

    @property
    def _has_loads(self) -> bool:
        return self._loads.latest is not None and bool(self._loads.latest.nodes)
