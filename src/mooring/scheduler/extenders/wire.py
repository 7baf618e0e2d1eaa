"""Requests to extenders and their responses: JSON with the names of kube-scheduler's Go fields.

Written as Go writes it. Read as Go reads it: upper and lower case are the same, null is nothing, what is unknown is
left alone; a value of the wrong type is a `MalformedResponse`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw

from mooring.base.errors import Fault
from mooring.base.nesting import decode

Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]


class MalformedResponse(Fault):
    """A response of the wrong shape."""


# Requests


def filter_args(pod: Raw, *, names: Sequence[str] | None = None, nodes: Sequence[Raw] | None = None) -> bytes:
    """filter and prioritize (ExtenderArgs): these nodes, by name or whole."""
    whole = None if nodes is None else {"metadata": {}, "items": nodes}
    return msgspec.json.encode({"Pod": pod, "Nodes": whole, "NodeNames": names})


def binding_args(name: str, namespace: str, uid: str, node: str) -> bytes:
    return msgspec.json.encode({"PodName": name, "PodNamespace": namespace, "PodUID": uid, "Node": node})


def preemption_args(pod: Raw, victims: Mapping[str, tuple[Sequence[Raw], int]]) -> bytes:
    """preempt (ExtenderPreemptionArgs): per node the victims, whole, and how many PodDisruptionBudget violations they
    cause."""
    by_node = {
        node: {"Pods": list(pods), "NumPDBViolations": violations} for node, (pods, violations) in victims.items()
    }
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": by_node, "NodeNameToMetaVictims": None})


def meta_preemption_args(pod: Raw, victims: Mapping[str, tuple[Sequence[str], int]]) -> bytes:
    """preempt, for an extender that knows the pods: only their uids."""
    by_node = {
        node: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}
        for node, (uids, violations) in victims.items()
    }
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": None, "NodeNameToMetaVictims": by_node})


# Responses


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Which nodes pass. An extender returns names or whole nodes; None is the field it did not use."""

    node_names: tuple[str, ...] | None = None
    nodes: tuple[str, ...] | None = None
    """The names of the whole nodes."""
    failed: Mapping[str, str] = field(default_factory=dict)
    failed_and_unresolvable: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True)
class MetaVictims:
    """The victims on a node, by uid, and how many PodDisruptionBudget violations they cause."""

    uids: tuple[str, ...] = ()
    budget_violations: int = 0


def read_filter(body: bytes) -> FilterResult:
    fields = _fields(body, "the response")
    names = _read(fields, "NodeNames", list[str | None] | None)
    return FilterResult(
        node_names=None if names is None else tuple(name or "" for name in names),
        nodes=_names_of_nodes(fields),
        failed=_reasons(fields, "FailedNodes"),
        failed_and_unresolvable=_reasons(fields, "FailedAndUnresolvableNodes"),
        error=_read(fields, "Error", str | None) or "",
    )


def read_priorities(body: bytes) -> dict[str, int]:
    """Score by node; one that is named twice has the sum."""
    scores: dict[str, int] = {}
    for item in _decoded(body, list[Raw] | None, "the response") or []:
        fields = _fields(item, "an item")
        host = _read(fields, "Host", str | None) or ""
        scores[host] = _wrapped(scores.get(host, 0) + (_read(fields, "Score", Int64 | None) or 0))
    return scores


def read_binding(body: bytes) -> str:
    """What went wrong, or nothing."""
    return _read(_fields(body, "the response"), "Error", str | None) or ""


def read_victims(body: bytes) -> dict[str, MetaVictims]:
    fields = _fields(body, "the response")
    by_node = _read(fields, "NodeNameToMetaVictims", dict[str, Raw] | None) or {}
    return {
        node: _meta_victims(_fields(victims, f"NodeNameToMetaVictims[{node}]")) for node, victims in by_node.items()
    }


def _meta_victims(fields: Mapping[str, Raw]) -> MetaVictims:
    pods = [_fields(pod, "an item of Pods") for pod in _read(fields, "Pods", list[Raw] | None) or []]
    return MetaVictims(
        tuple(_read(pod, "UID", str | None) or "" for pod in pods),
        _read(fields, "NumPDBViolations", Int64 | None) or 0,
    )


def _names_of_nodes(fields: Mapping[str, Raw]) -> tuple[str, ...] | None:
    """Whole nodes may be large: nothing of them is read but their names."""
    if _is_nothing(fields.get("nodes")):
        return None
    items = _read(_fields(fields["nodes"], "Nodes"), "items", list[Raw] | None) or []
    found = (_fields(item, "an item of Nodes") for item in items)
    metadata = (_fields(node.get("metadata", NULL), "metadata of an item of Nodes") for node in found)
    return tuple(_read(each, "name", str | None) or "" for each in metadata)


def _reasons(fields: Mapping[str, Raw], name: str) -> dict[str, str]:
    by_node = _read(fields, name, dict[str, str | None] | None) or {}
    return {node: reason or "" for node, reason in by_node.items()}


NULL = Raw(b"null")


def _is_nothing(raw: Raw | None) -> bool:
    return raw is None or bytes(raw) == b"null"


def _fields(raw: bytes | Raw, what: str) -> dict[str, Raw]:
    """The fields of an object by their names in lower case; of several spellings the last counts, as in Go."""
    return {name.lower(): value for name, value in (_decoded(raw, dict[str, Raw] | None, what) or {}).items()}


def _read(fields: Mapping[str, Raw], name: str, type_: Any) -> Any:
    return _decoded(fields.get(name.lower(), NULL), type_, name)


def _decoded(raw: bytes | Raw, type_: Any, what: str) -> Any:
    try:
        return decode(raw, type_)
    except msgspec.DecodeError as error:
        raise MalformedResponse(f"{what}: {error}") from error


def _wrapped(number: int) -> int:
    """Wrapped to 64 bits."""
    return (number + 2**63) % 2**64 - 2**63
