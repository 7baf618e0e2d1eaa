"""Creates the nodes, namespaces, volumes and pods of a workload, as many at once as upstream's harness does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from mooring.base.errors import ApiError
from mooring.bench.scheduler_perf.manifests import (
    CLAIMS,
    CSI_NODES,
    NAMESPACES,
    NODES,
    PODS,
    VOLUMES,
    claim_and_volume,
    csi_node,
    default_pod,
    nodes_of,
    typed,
    with_claim,
)
from mooring.bench.scheduler_perf.operations import CreateNamespaces, CreateNodes, CreatePods
from mooring.bench.scheduler_perf.templates import Document, Template, read_template
from mooring.bench.scheduler_perf.workload_files import Case
from mooring.client import ApiClient
from mooring.client.api import path_of
from mooring.objects import Kind

WORKERS = 30

_encode = msgspec.json.Encoder().encode
_T = TypeVar("_T")


async def in_parallel(items: Iterable[_T], work: Callable[[_T], Awaitable[object]], workers: int = WORKERS) -> None:
    """Work on every item, so many at a time; the first failure ends it."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(workers):
            group.create_task(worker())


@dataclass
class Templates:
    """The templates of a case, each read once."""

    case: Case
    _read: dict[str, Template] = field(default_factory=dict)

    def get(self, stated: str) -> Template:
        if stated not in self._read:
            self._read[stated] = read_template(self.case.path(stated))
        return self._read[stated]


class PodBatch:
    """The pods of one operation, rendered before anything is measured."""

    def __init__(self, operation: CreatePods, templates: Templates) -> None:
        stated = operation.pod_template_path or templates.case.test_case.default_pod_template_path
        self.count, self._template = operation.count, templates.get(stated) if stated else None
        self._claim = self._volume = None
        if operation.persistent_volume_claim_template_path:
            self._claim = typed(templates.get(operation.persistent_volume_claim_template_path).render(0, 1))
            self._volume = typed(templates.get(operation.persistent_volume_template_path).render(0, 1))
        is_same = self._claim is None and (self._template is None or self._template.is_static)
        rendered = 1 if is_same else self.count
        self._bodies = [_encode(self._pod(number)) for number in range(rendered)]

    def _pod(self, number: int) -> Document:
        pod = typed(self._template.render(number, self.count)) if self._template is not None else default_pod()
        return pod if self._claim is None else with_claim(pod, number)

    async def create(self, client: ApiClient, namespace: str) -> None:
        path = path_of(PODS, namespace)

        async def create_one(number: int) -> None:
            if self._claim is not None and self._volume is not None:
                await _create_bound(client, *claim_and_volume(self._claim, self._volume, number, namespace), namespace)
            await client.transport.request("POST", path, self._bodies[number % len(self._bodies)])

        await in_parallel(range(self.count), create_one)


async def _create_bound(client: ApiClient, claim: Document, volume: Document, namespace: str) -> None:
    # The status is not taken over when an object is created. The claim is first: the volume refers to it.
    bound = {"status": {"phase": "Bound"}}
    await client.create(CLAIMS, claim, namespace)
    await client.patch(CLAIMS, claim["metadata"]["name"], namespace, bound, subresource="status", form="merge")
    await client.create(VOLUMES, volume)
    await client.patch(VOLUMES, volume["metadata"]["name"], None, bound, subresource="status", form="merge")


async def create_nodes(client: ApiClient, operation: CreateNodes, templates: Templates, index: int) -> None:
    template = templates.get(operation.node_template_path) if operation.node_template_path else None
    strategy = operation.node_allocatable_strategy

    async def create_one(node: Document) -> None:
        await client.transport.request("POST", path_of(NODES, None), _encode(node))
        if strategy is not None:
            await client.create(CSI_NODES, csi_node(node["metadata"]["name"], strategy))

    await in_parallel(nodes_of(operation, template, index), create_one)


async def create_namespaces(client: ApiClient, operation: CreateNamespaces, templates: Templates) -> list[str]:
    """Returns their names."""
    base: Document = {}
    if operation.namespace_template_path:
        base = typed(templates.get(operation.namespace_template_path).render(0, 1))
    names = [f"{operation.prefix}-{number}" for number in range(operation.count)]
    await in_parallel(names, lambda name: create_if_absent(client, NAMESPACES, _renamed(base, name)))
    return names


async def create_if_absent(client: ApiClient, kind: Kind, document: Document, namespace: str | None = None) -> None:
    try:
        await client.create(kind, document, namespace)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            raise


def _renamed(document: Document, name: str) -> Document:
    return document | {"metadata": document.get("metadata", {}) | {"name": name}}
