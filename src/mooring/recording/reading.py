"""Reads a recording: its decisions, and the state of the cluster at any of them.

recording = Recording.read("cluster.recording")
recording.decisions[7].pod
for decision, state in recording.replay(): ...
recording.state_at(7).pods()
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.nesting import Decoder, decode
from mooring.framework import FeatureGates
from mooring.framework.gate_table import GATES
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.recording import rows
from mooring.recording.file_format import damaged, header_of, members, read_header, rows_of
from mooring.recording.ledger import KindKey, Ledger

K = TypeVar("K", bound=KubeObject)
R = TypeVar("R")
CHECKPOINTS = 8
"""States that are kept: most readers go forward, or a little back."""

_NAMESPACE = re.compile(rb'"namespace":"([^"\\]{1,63})"')

_row_decoder: Decoder[rows.AnyRow] = Decoder(rows.AnyRow)  # type: ignore[arg-type]
_node_decoder, _pod_decoder = Decoder(Node), Decoder(Pod)


class RecordedDecision(msgspec.Struct, frozen=True, gc=False):
    """A decision, without its evidence."""

    index: int
    """Its place in the file."""
    number: int
    """Counted from the beginning of the recording, also when the oldest are gone."""
    time: float
    pod: str
    uid: str
    kind: str
    """`bound`, `refused`, `preempted`, `failed` or `held`."""
    node: str | None
    message: str
    segment: int
    member: int
    line: int


class RecordedState:
    """The cluster as the scheduler saw it when it decided."""

    def __init__(self, ledger: Ledger, profiles: Sequence[str], path: Path | str = "") -> None:
        self.ledger = ledger
        self.profiles = profiles
        self._path = path

    def nodes(self) -> list[Node]:
        """In the order of the node table."""
        ordered = sorted(self.ledger.nodes.values(), key=lambda found: found[0])
        with rows_of(self._path):
            return [_node_decoder.decode(raw) for _, raw in ordered]

    def pods(self) -> list[Pod]:
        """Those that were assumed are on their node, and nominations are in the status."""
        with rows_of(self._path):
            return [self._pod(uid) for uid in self.ledger.pods]

    def pod(self, uid: str) -> Pod | None:
        with rows_of(self._path):
            return self._pod(uid) if uid in self.ledger.pods else None

    def _pod(self, uid: str) -> Pod:
        pod = _pod_decoder.decode(self.ledger.pod(uid))
        if (node := self.ledger.assumed.get(uid)) is not None:
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
        nominated = self.ledger.nominated.get(uid, "")
        if nominated != pod.status.nominated_node_name:
            status = msgspec.structs.replace(pod.status, nominated_node_name=nominated)
            pod = msgspec.structs.replace(pod, status=status)
        return pod

    def documents(self) -> dict[KindKey, list[dict[str, Any]]]:
        """All other objects, by apiVersion and kind."""
        with rows_of(self._path):
            return {kind: [decode(raw) for raw in found.values()] for kind, found in self.ledger.objects.items()}


class _Place(NamedTuple):
    """Where a reader is: behind this line of this member."""

    segment: int
    member: int
    line: int


class Recording:
    """A recording in a file. Made by `read`."""

    def __init__(
        self, path: Path | str, headers: dict[int, rows.SegmentHeader], decisions: list[RecordedDecision]
    ) -> None:
        self.path = path
        self.headers = headers
        """By the offset of the segment."""
        self.decisions: Sequence[RecordedDecision] = decisions
        self.notes: list[str] = []
        """What the reader should know: that the file is cut off, that decisions are missing."""
        self.missing = 0
        """Decisions that were dropped while it was recorded."""
        self._lines: tuple[int, list[bytes]] | None = None
        """Of the member that was read last: decisions are mostly looked at one after the other."""
        self._namespaces: frozenset[str] | None = None
        self._states: dict[int, tuple[_Place, Ledger]] = {}
        """By index, the last used last."""

    @property
    def header(self) -> rows.SegmentHeader:
        """That of the oldest segment."""
        return next(iter(self.headers.values()))

    @property
    def gates(self) -> FeatureGates:
        """The feature gates of the scheduler that recorded, as far as this version has them."""
        return FeatureGates({name: on for name, on in self.header.feature_gates.items() if name in GATES})

    @property
    def times(self) -> tuple[float, float]:
        """Of the first decision and of the last."""
        if not self.decisions:
            return self.header.time, self.header.time
        return self.decisions[0].time, self.decisions[-1].time

    @staticmethod
    def read(path: Path | str) -> Recording:
        """Find the decisions of the file. Raises OperatorMistake for what is no recording, or of a newer version."""
        read_header(path)
        headers: dict[int, rows.SegmentHeader] = {}
        decisions: list[RecordedDecision] = []
        messages: dict[str, str] = {}
        segment, is_closed, is_whole, missing = 0, False, True, 0
        for member in members(path):
            if member.lines and member.lines[0].startswith(rows.HEADER_PREFIX):
                segment = member.offset
                headers[segment] = header_of(path, member.lines[0])
            for number, line in enumerate(member.lines):
                if line.startswith(rows.DECISION_PREFIXES):
                    row = _decoded_by(_decision_decoder, path, line)
                    about = row.evidence or row
                    decisions.append(
                        RecordedDecision(
                            len(decisions),
                            row.number,
                            row.time,
                            about.pod,
                            about.uid,
                            row.outcome,
                            about.node if row.outcome == rows.BOUND else None,
                            messages.setdefault(about.message, about.message),
                            segment,
                            member.offset,
                            number,
                        )
                    )
                elif line.startswith(b'{"row":"configured"') and not headers[segment].configuration:
                    configured = _decoded(path, line)
                    if isinstance(configured, rows.Configured):
                        headers[segment] = _configured(headers[segment], configured)
                elif line.startswith(b'{"row":"gap"'):
                    gap = _decoded(path, line)
                    missing += gap.decisions if isinstance(gap, rows.MissingDecisions) else 0
            is_whole = member.is_whole
            is_closed = bool(member.lines) and member.lines[-1].startswith(b'{"row":"closed"')
        recording = Recording(path, headers, decisions)
        recording.missing = missing
        if not is_whole or not is_closed:
            recording.notes.append(
                "the recording ends without its closing row: the scheduler still writes it, or was killed, or the file "
                "was not copied whole; it was read up to its last whole row"
            )
        if missing:
            recording.notes.append(f"{missing} decisions are missing: the writer fell behind")
        return recording

    def namespaces(self) -> frozenset[str]:
        """All that occur in it, found without decoding rows."""
        if self._namespaces is None:
            found = {each.pod.partition("/")[0].encode() for each in self.decisions}
            for member in members(self.path):
                for line in member.lines:
                    found.update(_NAMESPACE.findall(line))
            self._namespaces = frozenset(each.decode("utf-8", "replace") for each in found)
        return self._namespaces

    def configuration_at(self, index: int) -> dict[str, Any]:
        """The configuration that made a decision."""
        wanted, found = self.decisions[index], self.headers[self.decisions[index].segment].configuration
        for place, row in self._rows(_Place(wanted.segment, wanted.segment, 0)):
            if place[1:] >= (wanted.member, wanted.line):
                break
            if isinstance(row, rows.Configured):
                found = row.configuration
        return found

    def evidence(self, index: int) -> dict[str, Any]:
        """All that explains a decision, as `mooring explain -o json` has it."""
        row = self.row(index)
        if isinstance(row, rows.Held):
            return {"pod": row.pod, "uid": row.uid, "attempt": row.attempt, "node": None, "message": row.message}
        return row.evidence.document()

    def row(self, index: int) -> rows.Decided | rows.Held:
        decision = self.decisions[index]
        if self._lines is None or self._lines[0] != decision.member:
            member = next(members(self.path, decision.member), None)
            self._lines = decision.member, member.lines if member is not None else []
        lines = self._lines[1]
        found = _decoded(self.path, lines[decision.line]) if decision.line < len(lines) else None
        if not isinstance(found, rows.Decided | rows.Held):
            raise damaged(self.path, f"the row of decision {index} is not there any more")
        return found

    def state_at(self, index: int) -> RecordedState:
        """The cluster when this decision was made; before it was carried out."""
        if not 0 <= index < len(self.decisions):
            raise OperatorMistake(
                f"The recording {self.path} has {len(self.decisions)} decisions; there is no {index}."
            )
        wanted = self.decisions[index]
        place, ledger = _Place(wanted.segment, wanted.segment, 0), Ledger()
        near = [known for known in self._states if known <= index and self.decisions[known].segment == wanted.segment]
        if near:
            place, known = self._states.pop(max(near))
            ledger = known.copy()
        for at, row in self._rows(place):
            if at[1:] >= (wanted.member, wanted.line):
                break
            with rows_of(self.path):
                ledger.apply(row)
            place = at
        self._states[index] = place, ledger
        while len(self._states) > CHECKPOINTS:
            del self._states[next(iter(self._states))]
        return RecordedState(ledger.copy(), self.headers[wanted.segment].profiles, self.path)

    def history(self) -> Iterator[rows.SegmentHeader | rows.AnyRow]:
        """Everything, in order. A header begins again with an empty state."""
        for segment, header in self.headers.items():
            yield header
            for _, row in self._rows(_Place(segment, segment, 0)):
                yield row

    def _rows(self, after: _Place) -> Iterator[tuple[_Place, rows.AnyRow]]:
        """The rows of a segment behind a place."""
        for member in members(self.path, after.member):
            lines: Iterable[tuple[int, bytes]] = enumerate(member.lines)
            for number, line in lines:
                if number == 0 and line.startswith(rows.HEADER_PREFIX):
                    if member.offset != after.segment:
                        return
                    continue
                place = _Place(after.segment, member.offset, number)
                if place[1:] <= after[1:] and after[1:] != (after.segment, 0):
                    continue
                yield place, _decoded(self.path, line)


def _configured(header: rows.SegmentHeader, row: rows.Configured) -> rows.SegmentHeader:
    """The first segment begins before the scheduler has a configuration."""
    return msgspec.structs.replace(
        header,
        configuration=row.configuration,
        profiles=row.profiles,
        kinds=row.kinds,
        feature_gates=row.feature_gates,
    )


def _decoded(path: Path | str, line: bytes) -> rows.AnyRow:
    return _decoded_by(_row_decoder, path, line)


def _decoded_by(decoder: Decoder[R], path: Path | str, line: bytes) -> R:
    try:
        return decoder.decode(line)
    except msgspec.DecodeError as error:
        raise damaged(path, f"a row cannot be decoded: {error}") from error


class _EvidenceLine(msgspec.Struct, array_like=True, gc=False):
    """The beginning of an `EvidenceRecord`: what lists of decisions show of it."""

    pod: str
    uid: str
    profile: str
    attempt: int
    node: str | None
    nodes: int
    evaluated_nodes: int
    feasible_nodes: int
    total: int
    scores: msgspec.Raw
    message: str


class _DecisionLine(msgspec.Struct, gc=False):
    """A decision; or an attempt that was held, which names its pod itself."""

    number: int = 0
    time: rows.Time = 0.0
    pod: str = ""
    uid: str = ""
    outcome: str = rows.HELD
    node: str | None = None
    message: str = ""
    evidence: _EvidenceLine | None = None


_decision_decoder = Decoder(_DecisionLine)
