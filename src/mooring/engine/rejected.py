"""Which plugin rejected which node, and why: one small number per node, spelled out when read.

A node has one verdict: that of the first plugin that rejected it, with all the reasons this plugin gave.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from mooring.framework import PENDING, UNRESOLVABLE, UNSCHEDULABLE, BoolArray, IntArray, Refusal, Rejection, Rejections
from mooring.state import Rows


class PluginVerdict(NamedTuple):
    """A plugin and its refusal. A verdict of the engine itself has no plugin ("")."""

    plugin: str
    refusal: Refusal


class Rejectors(NamedTuple):
    """The plugins whose events may make a rejected pod schedulable."""

    unschedulable: frozenset[str] = frozenset()
    """Those that returned unschedulable or unresolvable."""
    pending: frozenset[str] = frozenset()


NO_REJECTORS = Rejectors()


class RejectionGroup(NamedTuple):
    """Nodes with the same verdict."""

    verdict: PluginVerdict
    node_count: int
    nodes: list[str]
    """The names of the first of them."""


_FEW_REASONS = 10
"""So many reasons make patterns that are counted faster than sorted."""


class Step(msgspec.Struct):
    """What one filter plugin rejected among the rows it evaluated."""

    plugin: str
    rows: IntArray
    mask: BoolArray
    """True where it rejected."""
    at_once: Sequence[Rejections] = ()
    one_by_one: Mapping[int, Refusal] = msgspec.field(default_factory=dict)
    """By position among the rows."""
    codes: NDArray[np.uint16] | None = None
    """By position, the number of the verdict; 0 where it rejected nothing."""
    verdicts: Sequence[Refusal] = ()
    """The refusal of code 1, of code 2, …"""

    def without(self, others: Sequence[Step]) -> Step | None:
        """What it rejected besides the others, on the same rows; None: nothing. For steps that have codes."""
        if not others:
            return self
        assert self.codes is not None, "codes are per row"
        mask = self.mask & ~np.logical_or.reduce([step.mask for step in others])
        if not mask.any():
            return None
        return Step(self.plugin, self.rows, mask, codes=np.where(mask, self.codes, 0), verdicts=self.verdicts)


def numbered(step: Step, number: Callable[[Refusal], int]) -> NDArray[np.uint32]:
    """Per row of the step the number of its verdict; 0 where it rejected nothing."""
    if step.codes is not None:
        numbers = np.zeros(len(step.verdicts) + 1, np.uint32)
        for code in np.flatnonzero(np.bincount(step.codes)).tolist():
            if code:
                numbers[code] = number(step.verdicts[code - 1])
        return numbers.take(step.codes)
    if step.at_once:
        return _numbered_at_once(step, number)
    found = np.zeros(len(step.rows), np.uint32)
    for position, refusal in step.one_by_one.items():
        found[position] = number(refusal)
    return found


def _numbered_at_once(step: Step, number: Callable[[Refusal], int]) -> NDArray[np.uint32]:
    count = len(step.at_once)
    # Which of the reasons apply to a row, as bits, and above them whether any of these is unresolvable.
    bits: NDArray[Any] = np.zeros(len(step.rows), np.int64 if count < 62 else object)
    unresolvable = np.zeros(len(step.rows), np.bool_)
    for place, rejections in enumerate(step.at_once):
        bits += rejections.mask.astype(bits.dtype) * (1 << place)
        if rejections.unresolvable is not False:
            unresolvable |= rejections.mask & rejections.unresolvable
    bits += unresolvable.astype(bits.dtype) * (1 << count)

    def number_of(pattern: int) -> int:
        if not pattern:
            return 0
        reasons = [rejections.reason for place, rejections in enumerate(step.at_once) if pattern >> place & 1]
        return number(Rejection(*reasons, code=UNRESOLVABLE if pattern >> count else UNSCHEDULABLE))

    if count <= _FEW_REASONS:
        numbers = np.zeros(2 << count, np.uint32)
        for pattern in np.flatnonzero(np.bincount(bits)).tolist():
            numbers[pattern] = number_of(pattern)
        return numbers.take(bits)
    patterns, inverse = np.unique(bits, return_inverse=True)
    return np.array([number_of(int(pattern)) for pattern in patterns.tolist()], np.uint32).take(inverse)


class Rejected(Mapping[str, PluginVerdict]):
    """Node name → the plugin that rejected it and its rejection."""

    def __init__(self, nodes: Rows) -> None:
        self._nodes = nodes
        self._names = nodes.names
        self._verdicts: list[PluginVerdict] = []
        self._ids: dict[PluginVerdict, int] = {}
        self._which: NDArray[np.uint32] = np.zeros(len(nodes), np.uint32)
        """Per node the number of its verdict; 0: not rejected."""
        self._place_of: dict[str, int] | None = None

    @classmethod
    def everywhere(cls, nodes: Rows, verdict: PluginVerdict) -> Rejected:
        """The same verdict for every node."""
        rejected = cls(nodes)
        rejected._which[:] = rejected._id(verdict)
        return rejected

    @classmethod
    def by_steps(cls, nodes: Rows, steps: Sequence[Step]) -> Rejected:
        """What filters rejected."""
        rejected = cls(nodes)
        if steps:
            by_row = np.zeros(int(nodes.rows.max()) + 1, np.uint32)
            for step in steps:
                rejected._enter(step, by_row)
            rejected._which = by_row.take(nodes.rows)
        return rejected

    def clear(self, mask: BoolArray) -> None:
        """These nodes were not rejected after all."""
        self._which[mask] = 0

    def give(self, mask: BoolArray, verdict: PluginVerdict) -> None:
        """These nodes get this verdict."""
        self._which[mask] = self._id(verdict)

    def _enter(self, step: Step, by_row: NDArray[np.uint32]) -> None:
        """The verdicts of a filter, on rows that no filter before it rejected."""
        given = numbered(step, lambda refusal: self._id(PluginVerdict(step.plugin, refusal)))
        by_row[step.rows] += given  # each row is rejected by one filter, and the others add 0

    def _id(self, verdict: PluginVerdict) -> int:
        known = self._ids.get(verdict)
        if known is None:
            self._verdicts.append(verdict)
            known = self._ids[verdict] = len(self._verdicts)
        return known

    def __getitem__(self, name: str) -> PluginVerdict:
        if self._place_of is None:
            self._place_of = {each: place for place, each in enumerate(self._names)}
        which = int(self._which[self._place_of[name]])
        if not which:
            raise KeyError(name)
        return self._verdicts[which - 1]

    def verdict_at(self, row: int) -> PluginVerdict | None:
        """Of the node on a row of the table; None: it was not rejected."""
        [places] = np.nonzero(self._nodes.rows == row)
        which = int(self._which[places[0]]) if len(places) else 0
        return self._verdicts[which - 1] if which else None

    def __iter__(self) -> Iterator[str]:
        return (self._names[place] for place in np.flatnonzero(self._which).tolist())

    def __len__(self) -> int:
        return int(np.count_nonzero(self._which))

    def items(self) -> Any:
        return [
            (name, self._verdicts[which - 1])
            for name, which in zip(self._names, self._which.tolist(), strict=True)
            if which
        ]

    def resolvable_nodes(self) -> Rows:
        """The nodes where evicting pods could help. Only while the decision is being taken: it reads the table."""
        is_resolvable = np.array([False, *(refusal.code is UNSCHEDULABLE for _, refusal in self._verdicts)])
        return self._nodes.where(is_resolvable.take(self._which))

    def rows_by_verdict(self) -> list[tuple[IntArray, PluginVerdict]]:
        """The rows of the nodes that were given each verdict."""
        return [(self._nodes.rows[self._which == which], verdict) for which, verdict in enumerate(self._verdicts, 1)]

    def groups(self, *, most: int, named: int) -> list[RejectionGroup]:
        """The most frequent verdicts, each with its nodes."""
        counts = np.bincount(self._which, minlength=1)
        counts[0] = 0
        frequent = np.argsort(-counts, kind="stable")[: min(most, int(np.count_nonzero(counts)))]
        groups = [(which, np.flatnonzero(self._which == which)[:named]) for which in frequent.tolist()]
        # Ties in the order of the nodes: ids depend on whether the plain or the vector form of a rule ran.
        groups.sort(key=lambda group: (-counts[group[0]], group[1][0]))
        return [
            RejectionGroup(self._verdicts[which - 1], int(counts[which]), [self._names[at] for at in places.tolist()])
            for which, places in groups
        ]

    @property
    def kinds(self) -> int:
        """How many different verdicts were given."""
        return int(np.count_nonzero(np.bincount(self._which, minlength=1)[1:]))

    def reasons(self) -> Counter[str]:
        """How many nodes were rejected for each reason; a node with two reasons counts in both."""
        counts: Counter[str] = Counter()
        for which, nodes in enumerate(np.bincount(self._which).tolist()):
            if which and nodes:
                for reason in self._verdicts[which - 1].refusal.reasons:
                    counts[reason] += nodes
        return counts

    def counts_by_plugin(self) -> dict[str, int]:
        """How many nodes each plugin rejected."""
        counts: dict[str, int] = {}
        for which, nodes in enumerate(np.bincount(self._which).tolist()):
            if which and nodes:
                plugin = self._verdicts[which - 1].plugin
                counts[plugin] = counts.get(plugin, 0) + nodes
        return counts

    def rejectors(self) -> Rejectors:
        """The plugins that rejected some node."""
        # Counting is ten times as fast as `unique`.
        given = [self._verdicts[which - 1] for which in np.flatnonzero(np.bincount(self._which)).tolist() if which]
        return Rejectors(
            frozenset(plugin for plugin, refusal in given if plugin and refusal.code is not PENDING),
            frozenset(plugin for plugin, refusal in given if plugin and refusal.code is PENDING),
        )


def groups_of_whole_steps(nodes: Rows, steps: Sequence[Step], named: int) -> list[RejectionGroup] | None:
    """The groups of `Rejected`, read off the masks, where every filter had one reason: the usual case.

    None where a filter had several. The filters must have evaluated the nodes in their order, each once.
    """
    groups = []
    for step in steps:
        refusal = _only_refusal(step)
        if refusal is None:
            return None
        verdict = PluginVerdict(step.plugin, refusal)
        [places] = step.mask.nonzero()
        rows = step.rows[places[:named]]
        groups.append((int(rows[0]), RejectionGroup(verdict, len(places), list(nodes.of_rows(rows).names))))
    groups.sort(key=lambda group: (-group[1].node_count, group[0]))
    return [group for _, group in groups]


def _only_refusal(step: Step) -> Refusal | None:
    """The verdict of all rows that the step rejected; None where they may have several."""
    if len(step.verdicts) == 1:
        return step.verdicts[0]
    if len(step.at_once) != 1 or not isinstance(step.at_once[0].unresolvable, bool):
        return None
    [rejections] = step.at_once
    return Rejection(rejections.reason, code=UNRESOLVABLE if rejections.unresolvable else UNSCHEDULABLE)
