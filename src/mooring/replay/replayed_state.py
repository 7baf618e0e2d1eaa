"""The scheduler's state, brought by the rows of a recording to where it was at each decision."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

from mooring.base.errors import Fault
from mooring.base.nesting import Decoder
from mooring.objects import Node, Pod
from mooring.objects.meta import KubeObject, ObjectMeta
from mooring.objects.placed import PlacedPod, confirmed, placed
from mooring.objects.quantity import BadQuantity
from mooring.objects.requests import AmountsOrZero, PodRequests
from mooring.recording import rows
from mooring.recording.ledger import NODE, POD, KindKey, confirmed_pod, key_of
from mooring.scheduler.watching.informers import ObjectStore
from mooring.scheduler.wiring import Core
from mooring.state import State

_node_decoder, _pod_decoder = Decoder(Node), Decoder(Pod)
_PLACEHOLDER = "mooring-replay-free-row-"


class ReplayedState:
    """Applies rows to the state and to the object stores of a scheduler that is not running."""

    def __init__(self, core: Core, profiles: Collection[str]) -> None:
        self.state: State = core.state
        self.profiles = profiles
        """Of the scheduler that recorded: their pods were pending pods of its own."""
        self.waiting: dict[str, Pod] = {}
        """By uid."""
        self._uids: dict[str, str] = {}
        self._stores: dict[KindKey, ObjectStore[Any]] = {}
        self._decoders: dict[KindKey, Decoder[Any]] = {}
        self._unread: dict[KindKey, dict[str, rows.Set]] = {}
        """Objects of kinds that no plugin reads, until a reload adds one."""
        self._opening: list[rows.Set] = []
        self.follow(core)

    def follow(self, core: Core) -> None:
        """Also update the stores of the kinds that plugins read now."""
        for type_ in {kind for kinds in core.assembly.current.kinds.values() for kind in kinds}:
            kind = (type_.KIND.api_version, type_.KIND.kind)
            if kind not in self._stores:
                self._stores[kind], self._decoders[kind] = core.informers.store(type_), Decoder(type_)
                for row in self._unread.pop(kind, {}).values():
                    self._stores[kind].changed(self._decoders[kind].decode(row.object))
        core.informers.preload(lambda kind: core.informers.store(kind).all())

    def apply(self, row: rows.AnyRow) -> None:
        match row:
            case rows.Set():
                self._set(row)
            case rows.Deleted(api_version=api_version, kind=kind, key=key, uid=uid):
                self._delete((api_version, kind), key, uid)
            case rows.Decided(is_assumed=True, evidence=evidence, time=time):
                self._assume(evidence.uid, evidence.node or "", time)
            case rows.Assumed(uid=uid, node=node, time=time):
                self._assume(uid, node, time)
            case rows.Confirmed(uid=uid):
                if (pod := self.waiting.get(uid)) is not None:
                    self._show_pod(confirmed_pod(pod, row))
            case rows.Forgotten(uid=uid):
                with contextlib.suppress(Fault):  # the watch has confirmed it
                    self.state.forget(uid)
            case rows.Nominated(uid=uid, node=node):
                self.state.nominations.remove(uid)
                if node and (pod := self.waiting.get(uid)) is not None:
                    with contextlib.suppress(BadQuantity):
                        self.state.nominations.set(pod, node)
            case rows.Opened():
                self._open(row)

    def _open(self, row: rows.Opened) -> None:
        """Nodes get the rows of the table that they had: their order breaks ties."""
        names: dict[int, Node] = {each.place: _node_decoder.decode(each.object) for each in self._opening}
        places, free = range(row.places), row.freed
        if row.places > len(self._opening) + len(free) or len(names) < len(self._opening):
            raise ValueError(f"{row.places} rows of the node table for {len(names)} nodes and {len(free)} free rows")
        if any(each not in places for each in names) or any(each not in places or each in names for each in free):
            raise ValueError(f"a node or a free row beyond the {row.places} rows of the node table")
        self._opening.clear()
        gaps = [place for place in places if place not in names]
        for place in places:
            node = names.get(place) or Node(metadata=ObjectMeta(name=f"{_PLACEHOLDER}{place}"))
            self.state.set_node(node)
        for place in free or gaps:
            self.state.remove_node(f"{_PLACEHOLDER}{place}")

    def _set(self, row: rows.Set) -> None:
        kind = (row.api_version, row.kind)
        if kind == NODE:
            if row.place >= 0:
                self._opening.append(row)
            else:
                self.state.set_node(_node_decoder.decode(row.object))
        elif kind == POD:
            self._show_pod(_pod_decoder.decode(row.object))
            return
        if (store := self._stores.get(kind)) is not None:
            store.changed(self._decoders[kind].decode(row.object))
        elif kind != NODE:
            self._unread.setdefault(kind, {})[key_of(row.object)] = row

    def _delete(self, kind: tuple[str, str], key: str, uid: str) -> None:
        if kind == NODE:
            self.state.remove_node(key)
        elif kind == POD:
            known = self._uids.get(key)
            if known is not None and uid in ("", known):
                self._remove(key, known)
        if (store := self._stores.get(kind)) is not None and (old := _in_store(store, key)) is not None:
            store.deleted(old)
        elif kind in self._unread:
            self._unread[kind].pop(key, None)

    # Pods, as the feed of the watch does it; without the queue

    def _assume(self, uid: str, node: str, time: float) -> None:
        if (pod := self.waiting.get(uid)) is not None and self.state.pod(uid) is None:
            self.state.assume(pod, node, time)

    def _show_pod(self, pod: Pod) -> None:
        self._set_pod(pod)
        if (store := self._stores.get(POD)) is not None:
            store.changed(pod)

    def _set_pod(self, pod: Pod) -> None:
        key, uid, state = pod.key, pod.uid, self.state
        known = self._uids.get(key)
        if known is not None and known != uid:
            self._remove(key, known)
        self._uids[key] = uid
        if pod.spec.node_name:
            if self.waiting.pop(uid, None) is not None:
                state.remove_pending(uid)
                state.nominations.remove(uid)
            old = state.pod(uid)
            is_confirmation = old is not None and old.assumed_at is not None
            state.set_pod((confirmed(old, pod) if is_confirmation and old is not None else None) or _record(pod))
        elif pod.spec.scheduler_name in self.profiles or uid in self.waiting:
            _ = pod.template  # numbers that no API server accepts are found here, and not in a plugin
            self.waiting[uid] = pod
            state.set_pending(pod)
            if (record := state.pod(uid)) is not None and record.assumed_at is None:
                state.remove_pod(uid)

    def _remove(self, key: str, uid: str) -> None:
        del self._uids[key]
        if self.waiting.pop(uid, None) is not None:
            self.state.remove_pending(uid)
            self.state.nominations.remove(uid)
            if self.state.is_assumed(uid):
                # Its placement is undone by a row of its own.
                return
        self.state.remove_pod(uid)


def _in_store(store: ObjectStore[Any], key: str) -> KubeObject | None:
    namespace, _, name = key.rpartition("/")
    found: KubeObject | None = store.get(name, namespace or None)
    return found


def _record(pod: Pod) -> PlacedPod:
    """A pod whose requests cannot be read still occupies a place."""
    try:
        return placed(pod)
    except BadQuantity:
        pod.__dict__["requests"] = PodRequests(AmountsOrZero(), 0, 0)
        return placed(pod)
