"""The initial objects of a cluster: a number of nodes, or a file of Kubernetes objects and SimulatedNodes.

    apiVersion: mooring.dev/v1alpha1
    kind: SimulatedNodes
    count: 3                      # or names: [db-1, db-2]
    namePrefix: gpu-
    labels: {accelerator: h100}
    taints: [{key: gpu, effect: NoSchedule}]
    allocatable: {cpu: "64", memory: 512Gi, nvidia.com/gpu: "8"}
    zones: [zone-a, zone-b]
    use: {cpu: 10%, memory: 1Gi..2Gi}
    numa: {policy: single-numa-node, zones: 2}

A GeneratedCluster makes nodes of several kinds by a seed (`generated_cluster`). Every other document (or item of a
List) is an object that is created as it is; a Node is completed as its kubelet would. An object with a uid, a
resourceVersion or a creationTimestamp was written by an API server, such as what `kubectl get -o yaml` prints: it is
restored, with its status. All mistakes are reported, before anything is created.

A snapshot (`mooring snapshot`) is recognized by its content; all its objects are restored.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

import msgspec

from mooring.base.documents import MOST_BYTES, Tree, misread, read_trees
from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.base.memory import refuse_without_memory
from mooring.base.nesting import decode
from mooring.objects.names import dns_subdomain, label_value
from mooring.simulated.document_fields import Mistake, check_resources, check_taints, quoted
from mooring.simulated.generated_cluster import (
    GENERATED_CLUSTER,
    MOST_NODES,
    NODE_BYTES,
    generated_nodes,
    too_many_nodes,
)
from mooring.simulated.kubelet.node_registration import ZONES, node_document, registered_node
from mooring.simulated.kubelet.numa import check_numa, numa_annotation
from mooring.simulated.kubelet.resource_usage import check_use, use_annotations
from mooring.simulated.records import Document
from mooring.snapshots.file_format import Snapshot, is_snapshot, read_snapshot

Path = tuple[str | int, ...]
"""Fields and items from a document down to a value."""

SHORT_FORM = ("mooring.dev/v1alpha1", "SimulatedNodes")
GENERATED_WORKLOAD = "GeneratedWorkload"
"""Pods that arrive at a simulation: of the file of --workload."""
OURS = (SHORT_FORM[1], GENERATED_CLUSTER, GENERATED_WORKLOAD)
"""Kinds of `SHORT_FORM`'s version, which no API server has."""
_FIELD = re.compile(r"\b(?:spec|metadata|status|data)(?:\.[\w-]+|\[\d+\])+")
"""The path of a field in a message of the API server."""
_SERVER_WRITTEN = ("uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True)
class InitialObjects:
    """The objects to create, in this order; definitions must be served before `objects` are created."""

    definitions: list[Document] = field(default_factory=list)
    namespaces: list[Document] = field(default_factory=list)
    nodes: list[Document] = field(default_factory=list)
    objects: list[Document] = field(default_factory=list)
    restored: list[Document] = field(default_factory=list)
    """Objects as an API server wrote them; only the embedded server can restore them."""
    workloads: list[Document] = field(default_factory=list)
    """GeneratedWorkloads, which are no objects."""

    def in_order(self) -> list[Document]:
        """All objects that are created, without the restored ones."""
        return [*self.namespaces, *self.definitions, *self.nodes, *self.objects]


def plain_nodes(count: int, *, now: float) -> InitialObjects:
    """`node-1` … `node-N`."""
    if count < 0:
        raise OperatorMistake(f"A cluster cannot have {count} nodes.")
    return InitialObjects(nodes=[node_document(f"node-{index + 1}", ordinal=index, now=now) for index in range(count)])


class ClusterFile:
    """A parsed file: its objects, its problems, and the line of each document."""

    def __init__(self, text: str | bytes | Snapshot, source: str, *, now: float, most_nodes: int = MOST_NODES) -> None:
        """`most_nodes`: that are made of counts; 0: the file is a workload, and has none."""
        self.source = source
        self._most_nodes = most_nodes
        self.snapshot = text if isinstance(text, Snapshot) else None
        self._text = text
        self._now = now
        self._lines: dict[str, int | None] | None = None
        self._trees: dict[str, Tree] = {}
        reading = self._read_snapshot(text) if isinstance(text, Snapshot) else self._read_json(text)
        if reading is None or (reading.problems and self.snapshot is None):  # read once more, for the lines
            reading = self._read_trees()
        self.initial = reading.objects()
        self.problems = reading.problems
        self._places = reading.places

    def line_of(self, document: Document) -> int | None:
        """The line of an object of `initial`; None for one that is not in the file."""
        if self._lines is None:
            with contextlib.suppress(OperatorMistake):  # JSON that is not YAML, such as with tabs: without lines
                self._read_trees()
            self._lines = self._lines or {}
        return self._lines.get(self._places.get(id(document), ""))

    def problems_in(self, document: Document, mistakes: Sequence[Mistake]) -> list[Problem]:
        """Mistakes in the fields of a GeneratedWorkload, each with its line."""
        line, where = self.line_of(document), self._places[id(document)]
        tree = self._trees.get(where)
        return [
            Problem(f"{where}: {shown(path)}", message, tree.nearest(path).line if tree else line)
            for path, message in mistakes
        ]

    def refuse(self, problems: Sequence[Problem]) -> None:
        """Raise OperatorMistake with these problems, in the order of the file, if there are any."""
        if problems:
            placed = self._with_lines_of_fields(problems)
            raise OperatorMistake.found_in(self.source, sorted(placed, key=lambda each: each.line or 0))

    def _with_lines_of_fields(self, problems: Sequence[Problem]) -> list[Problem]:
        """Where a message names a field of the object that begins in its line: the line of the field."""
        if isinstance(self._text, Snapshot):
            return list(problems)
        objects: dict[int | None, Tree] = {}
        with contextlib.suppress(OperatorMistake):  # JSON that is not YAML
            for tree in read_trees(self._text, self.source):
                for each in (tree, *(tree.fields["items"].items if "items" in tree.fields else ())):
                    objects[each.line] = each
        found = []
        for problem in problems:
            tree_of_it, field = objects.get(problem.line), _FIELD.search(problem.message)
            if tree_of_it is not None and field is not None:
                steps = [int(step) if step.isdigit() else step for step in re.findall(r"[^.\[\]]+", field[0])]
                problem = Problem(problem.path, problem.message, tree_of_it.nearest(steps).line)
            found.append(problem)
        return found

    def _read_snapshot(self, snapshot: Snapshot) -> _Reading:
        reading = _Reading(self._now)
        for number, document in snapshot.numbered():
            reading.document(None, document, where := f"line {number}")
            reading.lines[where] = number
        self._lines = reading.lines
        return reading

    def _read_json(self, text: str | bytes) -> _Reading | None:
        if (document := _json(text)) is None:
            return None
        reading = _Reading(self._now, self._most_nodes)
        reading.document(None, document, "document 1")
        return reading

    def _read_trees(self) -> _Reading:
        assert not isinstance(self._text, Snapshot), "a snapshot has its lines"
        reading = _Reading(self._now, self._most_nodes)
        for index, tree in enumerate(read_trees(self._text, self.source)):
            reading.document(tree, tree.plain(), f"document {index + 1}")
        self._lines, self._trees = reading.lines, reading.trees
        return reading


def read_cluster_file(path: str, *, now: float) -> ClusterFile:
    """The file at `path`, with its problems."""
    if is_snapshot(path):
        return _of_a_cluster(ClusterFile(read_snapshot(path), path, now=now))
    try:
        content = FilePath(path).read_bytes()
    except OSError as error:
        raise OperatorMistake(f"The cluster file {path} cannot be read: {error.strerror}.") from error
    return _of_a_cluster(ClusterFile(content, path, now=now))


def _of_a_cluster(file: ClusterFile) -> ClusterFile:
    """A workload is no part of a cluster."""
    for document in file.initial.workloads:
        message = "describes pods that arrive at a simulation; it belongs into the file of --workload"
        file.problems.append(Problem(GENERATED_WORKLOAD, message, file.line_of(document)))
    return file


def load_cluster_file(path: str, *, now: float) -> InitialObjects:
    """The objects of the file at `path`."""
    file = read_cluster_file(path, now=now)
    file.refuse(file.problems)
    return file.initial


def parse_cluster(text: str | bytes, source: str, *, now: float) -> InitialObjects:
    """The objects of a cluster file's text. `source` names it in messages."""
    file = _of_a_cluster(ClusterFile(text, source, now=now))
    file.refuse(file.problems)
    return file.initial


def _json(text: str | bytes) -> Any:
    """The document of a JSON file, which parses many times as fast as YAML; None for any other file."""
    if text.lstrip()[:1] not in ("{", b"{") or len(text) > MOST_BYTES:
        return None
    try:
        return decode(text)
    except msgspec.DecodeError:
        return None


class _Reading:
    """One pass over a file: the objects found so far, and all problems."""

    def __init__(self, now: float, most_nodes: int = MOST_NODES) -> None:
        self.found = InitialObjects()
        self.problems: list[Problem] = []
        self.places: dict[int, str] = {}
        """The document of each object, by the object's id()."""
        self.lines: dict[str, int | None] = {}
        """The first line of each document."""
        self.trees: dict[str, Tree] = {}
        """Documents whose fields are checked later."""
        self._now = now
        self._most_nodes = most_nodes
        self._seen: dict[tuple[str, str, str, str], str] = {}
        self._unnamed = 0

    def objects(self) -> InitialObjects:
        """The objects found. Restored custom resources need their definitions and namespaces before them."""
        if not self.found.restored:
            return self.found
        first = self.found.namespaces + self.found.definitions
        return InitialObjects(
            nodes=self.found.nodes,
            objects=self.found.objects,
            restored=first + self.found.restored,
            workloads=self.found.workloads,
        )

    def document(self, tree: Tree | None, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            self._problem(tree, where, (), "must be an object with apiVersion and kind")
            return
        kind = value.get("kind")
        if isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
            for index, item in enumerate(value["items"]):
                self.document(tree and tree.fields["items"].items[index], item, f"{where}, items[{index}]")
            return
        missing = [name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str)]
        for name in missing:
            self._problem(tree, where, (name,), "is missing: every object has an apiVersion and a kind")
        if missing:
            return
        if value["kind"] in OURS and value["apiVersion"] != SHORT_FORM[0]:
            message = f'must be "{SHORT_FORM[0]}" for {value["kind"]}, got "{value["apiVersion"]}"'
            self._problem(tree, where, ("apiVersion",), message)
        if value["kind"] == SHORT_FORM[1]:
            self._simulated_nodes(tree, value, where)
        elif value["kind"] == GENERATED_CLUSTER:
            self._generated_cluster(tree, value, where)
        elif value["kind"] == GENERATED_WORKLOAD:
            self._generated_workload(tree, value, where)
        else:
            self._object(tree, value, where)

    def _object(self, tree: Tree | None, value: Document, where: str) -> None:
        self.lines[where] = tree.line if tree else None
        metadata = value.get("metadata")
        if not isinstance(metadata, dict) or not _has_name(metadata):
            self._problem(tree, where, ("metadata", "name"), "is missing")
            return
        wrong = [name for name in ("name", "generateName", "namespace") if not _is_text(metadata.get(name))]
        for name in wrong:
            self._problem(tree, where, ("metadata", name), f"must be text, got {misread(metadata[name])}")
        if wrong:
            return
        if metadata.get("name"):
            self._once(tree, where, value["apiVersion"], value["kind"], metadata)
        if any(metadata.get(field) for field in _SERVER_WRITTEN):
            self._keep(self.found.restored, value, where)
            return
        match value["apiVersion"], value["kind"]:
            case "v1", "Node":
                self._node(tree, value, where)
            case "v1", "Namespace":
                self._keep(self.found.namespaces, value, where)
            case str(version), "CustomResourceDefinition" if version.startswith("apiextensions.k8s.io/"):
                self._keep(self.found.definitions, value, where)
            case _:
                self._keep(self.found.objects, value, where)

    def _keep(self, among: list[Document], document: Document, where: str) -> None:
        among.append(document)
        self.places[id(document)] = where

    def _node(self, tree: Tree | None, value: Document, where: str) -> None:
        checks = list(check_resources(value, ("status", "allocatable")))
        checks += check_resources(value, ("status", "capacity"))
        for path, message in checks:
            self._problem(tree, where, path, message)
        if not checks:
            node = registered_node(value, ordinal=len(self.found.nodes), now=self._now)
            self._keep(self.found.nodes, node, where)

    def _simulated_nodes(self, tree: Tree | None, value: Document, where: str) -> None:
        self.lines[where] = tree.line if tree else None
        problems = list(_check_short_form(value))
        for path, message in problems:
            self._problem(tree, where, path, message)
        if problems or self._is_workload(tree, where):
            return
        count, most = len(value.get("names") or ()) or _count(value), self._most_nodes - len(self.found.nodes)
        if count > most:
            self._problem(tree, where, ("count",), too_many_nodes(count, most))
            return
        refuse_without_memory("nodes", count, NODE_BYTES)
        for name in self._names(value):
            self._once(tree, where, "v1", "Node", {"name": name})
            node = node_document(
                name,
                ordinal=len(self.found.nodes),
                labels=value.get("labels"),
                taints=value.get("taints") or (),
                allocatable={key: str(amount) for key, amount in (value.get("allocatable") or {}).items()},
                annotations=use_annotations(value.get("use") or {}) | numa_annotation(value.get("numa")),
                zones=value.get("zones", ZONES) or (),
                now=self._now,
            )
            self._keep(self.found.nodes, node, where)

    def _generated_cluster(self, tree: Tree | None, value: Document, where: str) -> None:
        self.lines[where] = tree.line if tree else None
        mistakes: list[Mistake] = []
        if self._is_workload(tree, where):
            return
        first = len(self.found.nodes)
        most = self._most_nodes - first
        for node in generated_nodes(value, mistakes, now=self._now, first=first, most=most):
            self._once(tree, where, "v1", "Node", node["metadata"])
            self._keep(self.found.nodes, node, where)
        for path, message in mistakes:
            self._problem(tree, where, path, message)

    def _generated_workload(self, tree: Tree | None, value: Document, where: str) -> None:
        self.lines[where] = tree.line if tree else None
        if tree is not None:
            self.trees[where] = tree
        self._keep(self.found.workloads, value, where)

    def _is_workload(self, tree: Tree | None, where: str) -> bool:
        if not self._most_nodes:
            self._problem(tree, where, (), "makes nodes; they belong into the file of --cluster, not into a workload")
        return not self._most_nodes

    def _names(self, value: Document) -> list[str]:
        """The listed names, or numbered ones. Documents without a prefix continue one numbering."""
        if value.get("names"):
            return list(value["names"])
        count = _count(value)
        if value.get("namePrefix") is not None:
            return [f"{value['namePrefix']}{index + 1}" for index in range(count)]
        first, self._unnamed = self._unnamed, self._unnamed + count
        return [f"node-{first + index + 1}" for index in range(count)]

    def _once(self, tree: Tree | None, where: str, version: str, kind: str, metadata: Document) -> None:
        key = (version, kind, str(metadata.get("namespace", "")), str(metadata["name"]))
        if key in self._seen:
            message = f'{kind} "{metadata["name"]}" is already in {self._seen[key]}'
            self._problem(tree, where, ("metadata", "name"), message)
        self._seen.setdefault(key, where)

    def _problem(self, tree: Tree | None, where: str, path: Path, message: str) -> None:
        field_path = f"{where}: {shown(path)}" if path else where
        self.problems.append(Problem(field_path, message, tree.nearest(path).line if tree else None))


def _count(value: Document) -> int:
    count = value.get("count")
    return 1 if count is None else int(count)


def _has_name(metadata: Document) -> bool:
    """A name that is not text counts, too: it has a message of its own."""
    return any(metadata.get(field) not in (None, "") for field in ("name", "generateName"))


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


def shown(path: Path) -> str:
    """A path as Kubernetes writes it: `spec.taints[0].effect`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def _check_short_form(value: Document) -> Iterator[Mistake]:
    """Validate a SimulatedNodes document."""
    for key in value:
        if key not in _SHORT_FORM_FIELDS and key not in ("apiVersion", "kind"):
            yield (key,), f"is not a field of {SHORT_FORM[1]}.{did_you_mean(key, _SHORT_FORM_FIELDS)}"
    for key, check in _SHORT_FORM_FIELDS.items():
        if value.get(key) is not None:
            yield from check(value, (key,))
    if value.get("names") is not None and (value.get("count") is not None or value.get("namePrefix") is not None):
        yield ("names",), "stands for count and namePrefix; give one or the other"


def _check_count(value: Document, path: Path) -> Iterator[Mistake]:
    count = value["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        yield path, f"must be a whole number of nodes, got {quoted(count)}"


def _check_prefix(value: Document, path: Path) -> Iterator[Mistake]:
    prefix = value["namePrefix"]
    if not isinstance(prefix, str) or dns_subdomain(f"{prefix}1"):
        yield path, f"must begin a valid node name (lower case letters, digits, '-' and '.'), got {quoted(prefix)}"


def _check_names(value: Document, path: Path) -> Iterator[Mistake]:
    names = value["names"]
    if not isinstance(names, list) or not names:
        yield path, f"must be a list of node names, got {quoted(names)}"
        return
    for index, name in enumerate(names):
        if not isinstance(name, str):
            yield (*path, index), f"must be a valid node name, got {misread(name)}"
        elif dns_subdomain(name):
            yield (*path, index), f"must be a valid node name, got {quoted(name)}"


def _check_zones(value: Document, path: Path) -> Iterator[Mistake]:
    zones = value["zones"]
    if not isinstance(zones, list) or not all(isinstance(zone, str) for zone in zones):
        yield path, f"must be a list of zone names, got {quoted(zones)}"


def _check_labels(value: Document, path: Path) -> Iterator[Mistake]:
    labels = value["labels"]
    if not isinstance(labels, dict):
        yield path, f"must be labels and their values, got {quoted(labels)}"
        return
    for key, label in labels.items():
        if not isinstance(label, str):
            yield (*path, key), f"must be text, got {misread(label)}"
        elif label_value(label):
            yield (*path, key), f"is not a valid label value: {quoted(label)}"


_SHORT_FORM_FIELDS: dict[str, Callable[[Document, Path], Iterator[Mistake]]] = {
    "count": _check_count,
    "namePrefix": _check_prefix,
    "names": _check_names,
    "labels": _check_labels,
    "taints": check_taints,
    "allocatable": check_resources,
    "zones": _check_zones,
    "use": check_use,
    "numa": check_numa,
}
