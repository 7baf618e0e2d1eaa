"""Which problems of outside data stand, and which events are due for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MOST_NODES = 5
"""A source that is wrong about all nodes is one problem, not thousands."""

WriteProblem = Callable[[str, bool, str, str], bool]
"""Writes an event: the node ("": the scheduler), whether it is a warning, reason and note. False: not now."""


class StandingProblems:
    """The `ProblemReports` of one plugin. What could not be written, as on a standby, is due again at the next call."""

    def __init__(self, write: WriteProblem) -> None:
        self._write = write
        self._nodes: set[tuple[str, str]] = set()
        """Node and reason of the events that were written and whose problem stands."""
        self._failing = ""
        """The reason of the last warning about the source; empty once it has recovered."""

    def on_nodes(self, problems: Mapping[tuple[str, str], str]) -> None:
        self._nodes.intersection_update(problems)
        for problem in sorted(problems):
            if len(self._nodes) >= MOST_NODES:
                return
            if problem not in self._nodes and self._write(problem[0], True, problem[1], problems[problem]):
                self._nodes.add(problem)

    def failing(self, reason: str, note: str) -> None:
        if reason != self._failing and self._write("", True, reason, note):
            self._failing = reason

    def recovered(self, reason: str, note: str) -> None:
        if self._failing and self._write("", False, reason, note):
            self._failing = ""
