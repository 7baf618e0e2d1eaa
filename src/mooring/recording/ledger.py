"""The state of the cluster as the rows of a recording build it: the writer's, and that of a reader at any decision.

Objects are kept as JSON. The order of nodes is that of the node table, and the order of pods that of the state: ties
depend on them.
"""

from __future__ import annotations

import msgspec

from mooring.base.nesting import Decoder
from mooring.objects import Pod
from mooring.recording.rows import (
    Assumed,
    Confirmed,
    Decided,
    Deleted,
    Forgotten,
    Moved,
    Nominated,
    Opened,
    RecordedRow,
    Set,
    encode,
)

NODE, POD = ("v1", "Node"), ("v1", "Pod")
KindKey = tuple[str, str]


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel", gc=False, frozen=True):
    node_name: str = ""


class _About(msgspec.Struct, gc=False):
    metadata: _Metadata
    spec: _Spec = _Spec()


class _AboutObject(msgspec.Struct, gc=False):
    metadata: _Metadata


_about_pod, _about = Decoder(_About), Decoder(_AboutObject)
_pod_decoder, _confirmed_decoder = Decoder(Pod), Decoder(Confirmed)


def key_of(raw: bytes | msgspec.Raw) -> str:
    """`namespace/name` of an object, or its name."""
    metadata = _about.decode(raw).metadata
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def confirmed_pod(pod: Pod, row: Confirmed) -> Pod:
    """The pod as the watch showed it on its node."""
    metadata = msgspec.structs.replace(pod.metadata, resource_version=row.resource_version)
    if row.labels is not None:
        metadata = msgspec.structs.replace(metadata, labels=row.labels)
    spec = msgspec.structs.replace(pod.spec, node_name=row.node)
    return msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=row.status)


class Ledger:
    """Applies rows."""

    def __init__(self) -> None:
        self.nodes: dict[str, tuple[int, bytes]] = {}
        """By name: the row of the node table, and the object."""
        self.freed: list[int] = []
        self.places = 0
        self.pods: dict[str, bytes] = {}
        """By uid, in the order of the state."""
        self.uids: dict[str, str] = {}
        """namespace/name → uid."""
        self.on_node: set[str] = set()
        """The uids of pods that the watch shows on a node."""
        self.confirmed: dict[str, bytes] = {}
        """uid → the row that confirmed its pod since it was set; `pod` puts the two together."""
        self.assumed: dict[str, str] = {}
        """uid → node."""
        self.nominated: dict[str, str] = {}
        self.objects: dict[KindKey, dict[str, bytes]] = {}

    def copy(self) -> Ledger:
        """One that changes on its own."""
        other = Ledger()
        other.nodes, other.freed, other.places = dict(self.nodes), list(self.freed), self.places
        other.pods, other.uids = dict(self.pods), dict(self.uids)
        other.on_node = set(self.on_node)
        other.confirmed, other.assumed, other.nominated = dict(self.confirmed), dict(self.assumed), dict(self.nominated)
        other.objects = {kind: dict(found) for kind, found in self.objects.items()}
        return other

    def __len__(self) -> int:
        return len(self.nodes) + len(self.pods) + sum(map(len, self.objects.values()))

    def apply(self, row: RecordedRow) -> None:
        """The change of a row."""
        match row:
            case Set():
                self._set(row)
            case Deleted(api_version=api_version, kind=kind, key=key, uid=uid):
                self.delete((api_version, kind), key, uid)
            case Decided(is_assumed=True, evidence=evidence):
                self.assume(evidence.uid, evidence.node or "")
            case Confirmed(uid=uid):
                self.confirm(uid, encode(row))
            case Assumed(uid=uid, node=node):
                self.assume(uid, node)
            case Moved(uid=uid):
                self.move(uid)
            case Forgotten(uid=uid):
                self.assumed.pop(uid, None)
            case Nominated(uid=uid, node=node):
                self.nominate(uid, node)
            case Opened(freed=freed, places=places):
                self.freed, self.places = list(freed), places

    def _set(self, row: Set) -> None:
        kind, raw = (row.api_version, row.kind), bytes(row.object)
        if kind == POD:
            pod = _about_pod.decode(raw)
            metadata = pod.metadata
            key = f"{metadata.namespace}/{metadata.name}"
            self.set_pod(key, metadata.uid, raw, is_on_node=bool(pod.spec.node_name))
            return
        if kind == NODE:
            self.set_node(key_of(raw), raw, row.place)
        else:
            self.set_object(kind, key_of(raw), raw)

    def set_node(self, name: str, raw: bytes, place: int = -1) -> None:
        """A new node takes the row that was freed last, as in the node table."""
        known = self.nodes.get(name)
        if known is not None:
            place = known[0]
        elif place < 0:
            if self.freed:
                place = self.freed.pop()
            else:
                place, self.places = self.places, self.places + 1
        self.nodes[name] = place, raw

    def set_pod(self, key: str, uid: str, raw: bytes, *, is_on_node: bool) -> None:
        known = self.uids.get(key)
        if known is not None and known != uid:
            self.delete(POD, key, known)
        self.uids[key] = uid
        if is_on_node and uid not in self.on_node:
            self.on_node.add(uid)
            if self.assumed.pop(uid, None) is None:
                self.pods.pop(uid, None)
        self.confirmed.pop(uid, None)
        self.pods[uid] = raw

    def confirm(self, uid: str, row: bytes) -> None:
        """The pod keeps the place that it got when it was assumed."""
        if uid in self.pods:
            self.on_node.add(uid)
            self.assumed.pop(uid, None)
            self.confirmed[uid] = row

    def pod(self, uid: str) -> bytes:
        """A pod, as the watch showed it last."""
        if (row := self.confirmed.pop(uid, None)) is not None:
            pod = _pod_decoder.decode(self.pods[uid])
            self.pods[uid] = encode(confirmed_pod(pod, _confirmed_decoder.decode(row)))
        return self.pods[uid]

    def set_object(self, kind: KindKey, key: str, raw: bytes) -> None:
        self.objects.setdefault(kind, {})[key] = raw

    def delete(self, kind: KindKey, key: str, uid: str = "") -> None:
        if kind == NODE:
            if (known := self.nodes.pop(key, None)) is not None:
                self.freed.append(known[0])
        elif kind == POD:
            if (uid := uid or self.uids.get(key, "")) in self.pods:
                del self.pods[uid]
                if self.uids.get(key) == uid:
                    del self.uids[key]
            self.on_node.discard(uid)
            self.confirmed.pop(uid, None)
            self.assumed.pop(uid, None)
            self.nominated.pop(uid, None)
        else:
            self.objects.get(kind, {}).pop(key, None)

    def move(self, uid: str) -> None:
        """Behind the other pods."""
        if (raw := self.pods.pop(uid, None)) is not None:
            self.pods[uid] = raw

    def assume(self, uid: str, node: str) -> None:
        self.move(uid)
        self.assumed[uid] = node
        self.nominated.pop(uid, None)

    def nominate(self, uid: str, node: str) -> None:
        self.nominated.pop(uid, None)
        if node:
            self.nominated[uid] = node

    def rows(self, time: float) -> list[RecordedRow]:
        """An opening state."""
        rows: list[RecordedRow] = []
        for _, (place, raw) in sorted(self.nodes.items(), key=lambda item: item[1][0]):
            rows.append(Set(time=time, api_version=NODE[0], kind=NODE[1], object=msgspec.Raw(raw), place=place))
        for uid in self.pods:
            rows.append(Set(time=time, api_version=POD[0], kind=POD[1], object=msgspec.Raw(self.pod(uid))))
            if (node := self.assumed.get(uid)) is not None:
                rows.append(Assumed(time=time, uid=uid, node=node))
        for (api_version, kind), found in self.objects.items():
            rows += [
                Set(time=time, api_version=api_version, kind=kind, object=msgspec.Raw(raw)) for raw in found.values()
            ]
        rows += [Nominated(time=time, uid=uid, node=node) for uid, node in self.nominated.items()]
        rows.append(Opened(time=time, objects=len(self), freed=list(self.freed), places=self.places))
        return rows
