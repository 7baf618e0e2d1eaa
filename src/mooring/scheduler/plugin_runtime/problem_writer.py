"""Writes the problems that plugins report as events: about a node, or about the Lease of the scheduler's election."""

from __future__ import annotations

from mooring.config.model import LeaderElection
from mooring.framework.standing_problems import StandingProblems
from mooring.objects.core import ObjectReference
from mooring.scheduler.cycle.reporting import Reporter
from mooring.state import State


class ProblemWriter:
    """For all plugins. Nothing is written before `lead`: of several replicas, each reads the same source."""

    def __init__(self, reporter: Reporter, state: State, election: LeaderElection) -> None:
        self._reporter, self._state, self._is_leading = reporter, state, False
        self._scheduler = ObjectReference(
            kind="Lease",
            api_version="coordination.k8s.io/v1",
            namespace=election.resource_namespace,
            name=election.resource_name,
        )

    def lead(self) -> None:
        """This replica schedules from now on."""
        self._is_leading = True

    def for_plugin(self, plugin: str) -> StandingProblems:
        def write(node: str, is_warning: bool, reason: str, note: str) -> bool:
            regarding = self._node(node) if node else self._scheduler
            if regarding is None or not self._is_leading:
                return False
            self._reporter.problem(regarding, plugin, reason=reason, note=note, is_warning=is_warning)
            return True

        return StandingProblems(write)

    def _node(self, name: str) -> ObjectReference | None:
        view = self._state.node(name)
        return None if view is None else ObjectReference(kind="Node", api_version="v1", name=name, uid=view.object.uid)
