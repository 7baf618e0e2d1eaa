"""Which measurements of a source count: possible ones, of nodes that exist. The others are counted and named."""

from __future__ import annotations

from bisect import insort
from collections.abc import Set

from mooring.base.errors import Fault
from mooring.plugins.community.trimaran.loads import IMPOSSIBLE, LoadMeasurement, Loads, NodeProblem

MOST_PERCENT = 10_000.0
"""More than a hundred times what a node has is no load."""
MOST_PER_NODE = 32
"""A source has a few measurements of a node; more would make each decision longer."""
MOST_NODE_PROBLEMS = 5
_LONGEST_NAME = 253


class NothingCounts(Fault):
    """The source reported something, of which nothing counts."""

    def __init__(self, message: str, node_problems: tuple[NodeProblem, ...]) -> None:
        super().__init__(message)
        self.node_problems = node_problems


class LoadChecks:
    """Collects what a source reports. `known`: the names of all nodes; empty, if they are not known."""

    def __init__(self, known: Set[str]) -> None:
        self._known = known
        self._nodes: dict[str, list[LoadMeasurement]] = {}
        self._rejected: dict[str, tuple[int, str]] = {}
        self._node_problems: list[NodeProblem] = []
        """The first by name: the same ones at each fetch, in whatever order the source reports."""
        self._unknown_node = ""
        self._reported = 0

    @property
    def is_empty(self) -> bool:
        """Nothing was reported at all."""
        return not self._reported

    def add(self, node: str, measured: LoadMeasurement) -> None:
        self._reported += 1
        if self._known and node not in self._known:
            self._reject_unknown(node)
        elif not 0 <= measured.value <= MOST_PERCENT:  # NaN is neither
            self._blame(node, IMPOSSIBLE)
            self._reject(IMPOSSIBLE, f"{node}: {measured.type} {measured.operator} {measured.value:g} %")
        elif len(found := self._nodes.setdefault(node, [])) >= MOST_PER_NODE:
            self._reject(f"beyond {MOST_PER_NODE} of a node", node)
        else:
            found.append(measured)

    def add_misdated(self, node: str, cause: str) -> None:
        """A node that was measured too long ago, or is yet to be measured."""
        self._reported += 1
        if self._known and node not in self._known:
            self._reject_unknown(node)
            return
        self._blame(node, cause)
        self._reject(cause, node)

    def loads(self, source: str, window_end: float) -> Loads:
        """What counts. Raises Fault if that is nothing."""
        problems = "; ".join(f"{count} {why}, such as {example}" for why, (count, example) in self._rejected.items())
        nodes = {name: tuple(measured) for name, measured in self._nodes.items() if measured}
        if not self._reported:
            raise Fault(f"{source} has no measurement of any node")
        if not nodes:
            raise NothingCounts(f"{source} has no measurement that counts: {problems}", tuple(self._node_problems))
        return Loads(nodes, window_end, problems, tuple(self._node_problems), self._unknown_node)

    def _reject_unknown(self, node: str) -> None:
        self._unknown_node = self._unknown_node or node[:_LONGEST_NAME]
        self._reject("of nodes that do not exist", node)

    def _blame(self, node: str, cause: str) -> None:
        problem = NodeProblem(node, cause)
        if problem not in self._node_problems:
            insort(self._node_problems, problem)
            del self._node_problems[MOST_NODE_PROBLEMS:]

    def _reject(self, why: str, example: str) -> None:
        count, first = self._rejected.get(why, (0, example[:_LONGEST_NAME]))
        self._rejected[why] = (count + 1, first)
