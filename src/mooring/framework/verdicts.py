"""What an extension point may return. "No" is a value here; only a fault is an exception.

Codes have kube-scheduler's meaning: `UNSCHEDULABLE` may be resolved by preemption, `UNRESOLVABLE` may not,
`PENDING` waits for something outside and is retried without backoff once its event comes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mooring.objects.placed import PlacedPod

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def constant(value: NDArray[Any], size: int) -> NDArray[Any]:
    """A column of one value, read-only. As `np.broadcast_to`, which takes ten times as long."""
    column: NDArray[Any] = np.ndarray((size,), value.dtype, value, 0, (0,))
    column.flags.writeable = False
    return column


def constant_score(score: int, nodes: Sized) -> IntArray:
    """The same score for every node, for `score_nodes`: costs nothing however many there are."""
    return _constant_score(score, len(nodes))


@lru_cache(maxsize=256)
def _constant_score(score: int, size: int) -> IntArray:
    return constant(np.array((score,), np.int64), size)


class Code(Enum):
    """kube-scheduler's status codes, by the names its messages and metrics use."""

    SUCCESS = "Success"
    ERROR = "Error"
    UNSCHEDULABLE = "Unschedulable"
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    WAIT = "Wait"
    SKIP = "Skip"
    PENDING = "Pending"


UNSCHEDULABLE, UNRESOLVABLE, PENDING = Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING


class Refusal:
    """No, for the whole pod: its reasons become the pod's condition and event.

    `code` is UNSCHEDULABLE; UNRESOLVABLE, if evicting pods could not help; or PENDING.
    """

    __slots__ = ("_code", "_reasons")

    def __init__(self, *reasons: str, code: Code = UNSCHEDULABLE) -> None:
        if code not in (UNSCHEDULABLE, UNRESOLVABLE, PENDING):
            raise ValueError(f"a refusal is unschedulable, unresolvable or pending, not {code.value}")
        self._reasons = reasons
        self._code = code

    @property
    def reasons(self) -> tuple[str, ...]:
        return self._reasons

    @property
    def code(self) -> Code:
        return self._code

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Refusal)
            and type(other) is type(self)
            and (other._reasons, other._code) == (self._reasons, self._code)
        )

    def __hash__(self) -> int:
        return hash((self._reasons, self._code))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.reasons))}, code={self.code.name})"


class Rejection(Refusal):
    """No, for one node: counted with the other nodes' reasons in "0/3 nodes are available: …"."""

    __slots__ = ()


class PostFilterRefusal(Refusal):
    """From post_filter: no for now, and what the scheduler should do about it. The other plugins still run.

    `nominate`: None leaves an earlier nomination of the pod as it is, "" clears it.
    """

    __slots__ = ("deallocate", "nominate", "retry_after", "tried")

    def __init__(
        self,
        *reasons: str,
        code: Code = UNSCHEDULABLE,
        nominate: str | None = None,
        deallocate: tuple[ClaimRelease, ...] = (),
        retry_after: float | None = None,
        tried: NodeRefusals | None = None,
    ) -> None:
        super().__init__(*reasons, code=code)
        self.nominate = nominate
        self.deallocate = deallocate
        self.retry_after = retry_after
        """Seconds after which the pod is tried again, if it still waits then."""
        self.tried = tried
        """By node where preemption was tried: why it does not help there. Evidence, for users."""


class NodeRefusals:
    """Nodes by the refusal they were given: thousands of nodes have few different ones."""

    def __init__(self, names: Sequence[str], rows: IntArray) -> None:
        """The names of all nodes and their rows, which ascend."""
        self._names = names
        self._rows = rows
        self._given: list[tuple[IntArray, Refusal]] = []

    def give(self, rows: IntArray, refusal: Refusal) -> None:
        """The nodes on these rows are refused for this."""
        if len(rows):
            self._given.append((np.searchsorted(self._rows, rows), refusal))

    def reasons(self) -> dict[str, int]:
        """How many nodes have each reason."""
        counts: dict[str, int] = {}
        for places, refusal in self._given:
            for reason in refusal.reasons:
                counts[reason] = counts.get(reason, 0) + len(places)
        return counts

    def by_reasons(self, named: int) -> list[tuple[tuple[str, ...], int, list[str]]]:
        """The reasons of each refusal, for how many nodes, and the names of the first of these; the most first."""
        groups: dict[tuple[str, ...], list[IntArray]] = {}
        for places, refusal in self._given:
            groups.setdefault(refusal.reasons, []).append(places)
        counted = [(reasons, np.concatenate(places)) for reasons, places in groups.items()]
        counted.sort(key=lambda group: -len(group[1]))
        return [
            (reasons, len(places), [self._names[place] for place in places[:named].tolist()])
            for reasons, places in counted
        ]


@dataclass(frozen=True, slots=True)
class ClaimRelease:
    """A ResourceClaim that blocks the pod: it is deallocated or deleted, or no longer reserved for one consumer."""

    namespace: str
    name: str
    uid: str
    resource_version: str = ""
    """The resourceVersion of the claim when this was decided, as a precondition; "" for none."""
    delete: bool = False
    unreserve: str = ""
    """The uid of the only consumer that is removed; the allocation stays."""


@dataclass(frozen=True, slots=True, eq=False)
class Rejections:
    """No, for many nodes at once and one reason. A rule with several reasons yields several of these."""

    mask: BoolArray
    """True where the node is rejected; one per row that was passed."""
    reason: str
    unresolvable: bool | BoolArray = False
    """Where evicting pods could not help: for all of the mask, or per row."""


@dataclass(frozen=True, slots=True, init=False)  # without a Python call: most plugins skip most pods
class Skip:
    """This point has nothing to do for this pod: from pre_filter, its filter does not run in this cycle;
    from pre_score, its score; from bind, the next bind plugin is tried."""


@dataclass(frozen=True, slots=True)
class OnlyNodes:
    """From pre_filter: only these nodes can run the pod; the others are not evaluated."""

    names: Collection[str]
    state: Any = None


@dataclass(frozen=True, slots=True)
class Allow:
    """From permit: go on and bind."""


@dataclass(frozen=True, slots=True)
class Wait:
    """From permit: hold the pod, reserved on its node, until plugins allow it, one rejects it, or the time is up."""

    seconds: float
    reason: str = ""
    """What the pod waits for."""


@dataclass(frozen=True, slots=True)
class Bound:
    """From bind: done, the pod is bound."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node where evicting these pods would make room."""

    node: str
    victims: tuple[PlacedPod, ...]
    """The most important first."""
    budget_violations: int = 0
    """How many of them a PodDisruptionBudget protects."""


@dataclass(frozen=True, slots=True)
class Plan:
    """From post_filter: what would make room. The scheduler executes it; the plugin only proposes.

    `nominate` names the node kept for the pod meanwhile; None leaves an earlier nomination as it is. Victims that are
    terminating already are not evicted again; the last of the others is evicted when all others have been.
    """

    nominate: str | None = None
    evict: tuple[PlacedPod, ...] = ()
    message: str = field(default="")
    eviction_message: str = ""
    """What conditions and events of the victims report; "": that they are preempted for the pod."""
    candidates: Sequence[Candidate] = ()
    """Every candidate, the chosen one among them: evidence, for people and tests."""


def no_node_available(nodes: int, reasons: Mapping[str, int]) -> str:
    """kube-scheduler's sentence about so many nodes, and how many of them gave each reason."""
    # Sorted as text, so "10 x" stands before "2 y".
    why = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
    return f"0/{nodes} nodes are available:" + (f" {why}." if why else "")
