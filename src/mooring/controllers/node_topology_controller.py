"""Reports NodeResourceTopologies that contradict themselves or their node, as events on both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from mooring.base.clock import Clock
from mooring.base.log import Log
from mooring.client.core_event_recorder import CoreEventRecorder, EventSource
from mooring.client.informer import Informer
from mooring.client.work_queue import WorkQueue
from mooring.controllers.cluster_room import allocatable_of
from mooring.controllers.problem_events import ObjectProblem, ProblemEvents
from mooring.objects import Node
from mooring.plugins.community.node_resource_topology.contradictions import problem_of
from mooring.plugins.community.node_resource_topology.topologies import NodeResourceTopology

SOURCE = EventSource("mooring-controllers")
INVALID = "InvalidTopology"


class NodeTopologyController:
    """A topology has the name of its node."""

    def __init__(
        self,
        topologies: Informer[NodeResourceTopology],
        nodes: Informer[Node],
        events: CoreEventRecorder,
        *,
        clock: Clock,
    ) -> None:
        self._topologies, self._nodes = topologies, nodes
        self._problems = ProblemEvents(events, SOURCE, clock)
        self._queue = WorkQueue("node topologies", self._sync, clock=clock, log=Log("controllers"), workers=1)
        topologies.subscribe(changed=lambda topology: self._queue.add(topology.name), deleted=self._deleted)
        nodes.subscribe(changed=lambda node: self._queue.add(node.name), deleted=self._deleted)

    def tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        return {"node topologies": self._queue.run}

    def _deleted(self, gone: Node | NodeResourceTopology) -> None:
        self._problems.forget(gone)
        self._queue.add(gone.name)

    async def _sync(self, name: str) -> None:
        topology, node = self._topologies.get(name), self._nodes.get(name)
        message = "" if topology is None else topology_problem(topology, node)
        problem = ObjectProblem(INVALID, f"NodeResourceTopology {name}: {message}") if message else None
        for about in (topology, node):
            if about is not None and (after := self._problems.report(about, problem)):
                self._queue.add_after(name, after)


def topology_problem(topology: NodeResourceTopology, node: Node | None) -> str:
    """What is wrong; "" for nothing."""
    if node is None:
        return "no node has this name"
    allocatable = allocatable_of(node)
    return problem_of(topology, lambda resource: allocatable.get(resource, 0))
