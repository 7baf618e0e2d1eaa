"""What the demo shows: one line per step while it happens, then a table of what went where and why, then the events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mooring.base.visible import visible
from mooring.explain import in_one_line
from mooring.objects import Pod

_WIDTH = 160
_EVENT_ORDER = ("eventTime", "deprecatedFirstTimestamp")


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column != columns[-1])
    return table


def _shown(text: str) -> Text:
    """What others wrote, without rich's markup."""
    return Text(visible(text))


class Show:
    """Writes to standard output; plain text where that is no terminal."""

    def __init__(self) -> None:
        self._console = Console(highlight=False)
        if not self._console.is_terminal:
            self._console = Console(highlight=False, width=_WIDTH)
        self._began = time.monotonic()
        self._said: dict[str, str] = {}

    def step(self, text: str) -> None:
        self._console.print(self._now(), Text(visible(text), "bold"))

    def progress(self, pod: Pod, decision: dict[str, Any] | None) -> None:
        """A line for each thing that is new about a pod."""
        condition = pod.condition("PodScheduled")
        if pod.status.phase == "Running":
            news = Text.assemble(("Running", "green"), f" on {visible(pod.spec.node_name)}")
        elif pod.spec.node_name:
            news = Text(f"bound to {visible(pod.spec.node_name)}")
        elif condition is not None and condition.message:
            news = Text.assemble(("waits", "yellow"), f": {visible(condition.message)}")
        else:
            return
        if self._said.get(pod.name) != news.plain:
            self._said[pod.name] = news.plain
            self._console.print(self._now(), Text.assemble(f"  {visible(pod.name)}: ", news))

    def _now(self) -> Text:
        return Text(f"{time.monotonic() - self._began:5.1f} s ", "dim")

    def table(self, pods: Sequence[tuple[Pod, dict[str, Any] | None]]) -> None:
        table = _table("What went where, and why", ("POD", "PROFILE", "NODE", "WHY"))
        for pod, decision in sorted(pods, key=lambda each: each[0].name):
            node = Text(visible(pod.spec.node_name)) if pod.spec.node_name else Text("(pending)", "yellow")
            why = in_one_line(decision) if decision is not None else "the decision of another scheduler"
            table.add_row(_shown(pod.name), _shown(pod.spec.scheduler_name), node, _shown(why))
        self._console.print(table)

    def events(self, events: Sequence[dict[str, Any]]) -> None:
        table = _table("Events, as kubectl get events shows them", ("FROM", "REASON", "OBJECT", "MESSAGE"))
        for event in sorted(events, key=lambda event: next((event[at] for at in _EVENT_ORDER if event.get(at)), "")):
            about = event.get("regarding", {})
            count = event.get("series", {}).get("count", 1)
            source = event.get("reportingController") or event.get("deprecatedSource", {}).get("component", "")
            table.add_row(
                _shown(source),
                _shown(event.get("reason", "") + (f" (x{count})" if count > 1 else "")),
                _shown(f"{about.get('kind', '').lower()}/{about.get('name', '')}"),
                _shown(event.get("note", "")),
            )
        self._console.print(table)

    def end(self) -> None:
        self._console.print(
            f"\nDone in {time.monotonic() - self._began:.1f} s. Next: [bold]mooring up[/] keeps such a cluster "
            "running for kubectl;\n[bold]mooring plugin new[/] writes a plugin with its test."
        )
