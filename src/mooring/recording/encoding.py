"""Items of the buffer as lines of the file; and the ledger, which becomes the opening state of the next segment.

What scheduling does not read is left out as in a snapshot: annotations, sources of volumes; Secrets and ConfigMaps are
never recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from mooring.engine.evidence import EvidenceRecord
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject
from mooring.recording import rows
from mooring.recording.ledger import POD, Ledger
from mooring.recording.recorder import ASSUMED, EXTENDED, LIMITED, WITHDRAWN, Item, What
from mooring.snapshots.pruning import Pruning
from mooring.snapshots.taking import NEVER


class RowEncoder:
    """Keeps the ledger in step with the lines."""

    def __init__(self, ledger: Ledger, keep_annotations: Iterable[str] = ()) -> None:
        self.ledger = ledger
        self.number = 0
        """Of the next decision."""
        self._pruning = Pruning(keep_annotations)
        self._prefixes: dict[type[KubeObject], bytes] = {}

    def add_lines(self, item: Item, lines: list[bytes]) -> None:
        """Append the lines of an item."""
        what, time, subject, detail = item
        if what is What.SET:
            if subject.KIND.plural not in NEVER:
                lines.append(self._set(time, subject))
        elif what is What.DECIDED:
            lines.append(self._decided(time, subject, detail))
        elif what is What.CONFIRMED:
            lines.append(self._confirmed(time, subject, detail))
        elif what is What.DELETED:
            lines.extend(self._deleted(time, subject, [detail[0]], detail[1]))
        elif what is What.LISTED:
            lines.extend(self._deleted(time, subject, sorted(self._known(subject) - detail), ""))
        else:
            lines.append(rows.encode(self._other(item)))

    def _other(self, item: Item) -> rows.RecordedRow:
        what, time, subject, detail = item
        row: rows.RecordedRow
        match what:
            case What.ASSUMED:
                row = rows.Assumed(time=time, uid=subject, node=detail)
            case What.FORGOTTEN:
                row = rows.Forgotten(time=time, uid=subject)
            case What.MOVED:
                row = rows.Moved(time=time, uid=subject)
            case What.NOMINATED:
                row = rows.Nominated(time=time, uid=subject, node=detail)
            case What.NOTED:
                row = rows.Noted(time=time, uid=subject, notes=detail)
            case What.CONFIGURED:
                profiles, kinds, gates = detail
                row = rows.Configured(
                    time=time, configuration=subject, profiles=profiles, kinds=kinds, feature_gates=gates
                )
            case What.GAP:
                self.number += subject
                row = rows.MissingDecisions(time=time, decisions=subject)
            case _:
                self.number += 1
                message, attempt = str(subject.get("message", "")), int(subject.get("attempt", 0))
                row = rows.Held(
                    time=time, number=self.number, pod=detail[0], uid=detail[1], attempt=attempt, message=message
                )
        self.ledger.apply(row)
        return row

    def _set(self, time: float, found: KubeObject) -> bytes:
        raw = rows.encode(self._pruned(found))
        kind = found.KIND
        if isinstance(found, Pod):
            metadata = found.metadata
            key = f"{metadata.namespace}/{metadata.name}"
            self.ledger.set_pod(key, metadata.uid, raw, is_on_node=bool(found.spec.node_name))
        elif isinstance(found, Node):
            self.ledger.set_node(found.name, raw)
        else:
            self.ledger.set_object((kind.api_version, kind.kind), found.key, raw)
        prefix = self._prefixes.get(type(found))
        if prefix is None:
            named = b',"apiVersion":%s,"kind":%s,"object":' % (rows.encode(kind.api_version), rows.encode(kind.kind))
            prefix = self._prefixes[type(found)] = named
        return b'{"row":"set","time":%.6f%b%b}' % (time, prefix, raw)

    def _pruned(self, found: KubeObject) -> KubeObject:
        metadata = found.metadata
        changes: dict[str, Any] = {}
        if metadata.annotations:
            kept = {key: text for key, text in metadata.annotations.items() if self._pruning.keeps(key)}
            if len(kept) < len(metadata.annotations):
                changes["metadata"] = msgspec.structs.replace(metadata, annotations=kept)
        if isinstance(found, Pod) and found.spec.has_volumes:
            volumes = tuple(self._pruning.pod_volumes(found.spec.volumes))
            if volumes != found.spec.volumes:
                changes["spec"] = msgspec.structs.replace(found.spec, _volumes=volumes)
        return msgspec.structs.replace(found, **changes) if changes else found

    def _deleted(self, time: float, type_: type[KubeObject], keys: Iterable[str], uid: str) -> Iterator[bytes]:
        kind = type_.KIND
        for key in keys:
            self.ledger.delete((kind.api_version, kind.kind), key, uid)
            yield rows.encode(rows.Deleted(time=time, api_version=kind.api_version, kind=kind.kind, key=key, uid=uid))

    def _known(self, type_: type[KubeObject]) -> set[str]:
        kind = (type_.KIND.api_version, type_.KIND.kind)
        if kind == POD:
            return set(self.ledger.uids)
        return set(self.ledger.nodes if type_ is Node else self.ledger.objects.get(kind, ()))

    # The two rows below, and that of a pod, are most of what is written: put together from their parts.

    def _decided(self, time: float, evidence: EvidenceRecord, detail: int) -> bytes:
        self.number += 1
        if detail & ASSUMED:
            self.ledger.assume(evidence.uid, evidence.node or "")
        outcome = rows.REFUSED if detail & WITHDRAWN else outcome_of(evidence)
        return _DECIDED % (time, self.number, _OUTCOMES[outcome], _DETAILS[detail & ~WITHDRAWN], rows.encode(evidence))

    def _confirmed(self, time: float, pod: Pod, labels: dict[str, str] | None) -> bytes:
        uid, version = pod.metadata.uid, pod.metadata.resource_version
        line = rows.encode(
            rows.Confirmed(
                time=time, uid=uid, node=pod.spec.node_name, resource_version=version, labels=labels, status=pod.status
            )
        )
        self.ledger.confirm(uid, line)
        return line


_DECIDED = b'{"row":"decision","time":%.6f,"number":%d,"outcome":%b%b,"evidence":%b}'
_OUTCOMES = {each: rows.encode(each) for each in (rows.BOUND, rows.REFUSED, rows.PREEMPTED, rows.FAILED)}
_DETAILS = tuple(
    b"".join(
        b',"%b":true' % name
        for bit, name in ((ASSUMED, b"isAssumed"), (EXTENDED, b"isExtended"), (LIMITED, b"isLimited"))
        if details & bit
    )
    for details in range(8)
)
"""By the sum of a decision's details."""


def outcome_of(evidence: EvidenceRecord) -> str:
    if evidence.node is not None:
        return rows.BOUND
    if evidence.fault is not None:
        return rows.FAILED
    return rows.PREEMPTED if evidence.room is not None and "plan" in evidence.room else rows.REFUSED
