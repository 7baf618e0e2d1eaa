"""What the demo shows: one line per step while it happens, then a table of what went where and why, then the events."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from mooring.cli.output import print_line, print_lines, print_table
from mooring.explain import in_one_line
from mooring.objects import Pod

_EVENT_ORDER = ("eventTime", "deprecatedFirstTimestamp")


class Show:
    """Writes to standard output; plain text where that is no terminal."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._shown: dict[str, str] = {}

    def step(self, text: str) -> None:
        print_line(text, mark=self._now())

    def progress(self, pod: Pod) -> None:
        """A line for each change of a pod."""
        condition = pod.condition("PodScheduled")
        if pod.status.phase == "Running":
            state, colour, detail = "Running", "green", f"on {pod.spec.node_name}"
        elif pod.spec.node_name:
            state, colour, detail = "bound", None, f"to {pod.spec.node_name}"
        elif condition is not None and condition.message:
            state, colour, detail = "pending", "yellow", condition.message
        else:
            return
        if self._shown.get(pod.name) != f"{state} {detail}":
            self._shown[pod.name] = f"{state} {detail}"
            print_line(f"{pod.name}: {detail}", mark=f"{self._now()}   {state:<7}", colour=colour)

    def _now(self) -> str:
        return f"{time.monotonic() - self._began:5.1f} s"

    def table(self, pods: Sequence[tuple[Pod, dict[str, Any] | None]]) -> None:
        rows = [
            (
                pod.name,
                pod.spec.scheduler_name,
                pod.spec.node_name or "(pending)",
                in_one_line(decision) if decision is not None else "the decision of another scheduler",
            )
            for pod, decision in sorted(pods, key=lambda each: each[0].name)
        ]
        print_table("What went where, and why", ("POD", "PROFILE", "NODE", "WHY"), rows)

    def events(self, events: Sequence[dict[str, Any]]) -> None:
        rows = []
        for event in sorted(events, key=lambda event: next((event[at] for at in _EVENT_ORDER if event.get(at)), "")):
            about = event.get("regarding", {})
            count = event.get("series", {}).get("count", 1)
            rows.append(
                (
                    event.get("reportingController") or event.get("deprecatedSource", {}).get("component", ""),
                    event.get("reason", "") + (f" (x{count})" if count > 1 else ""),
                    f"{about.get('kind', '').lower()}/{about.get('name', '')}",
                    event.get("note", ""),
                )
            )
        print_table("Events, as kubectl get events shows them", ("FROM", "REASON", "OBJECT", "MESSAGE"), rows)

    def end(self) -> None:
        print_lines(
            f"\nDone in {time.monotonic() - self._began:.1f} s. Next: `mooring up` keeps such a cluster running for "
            "kubectl;\n`mooring plugin new` writes a plugin with its test."
        )
