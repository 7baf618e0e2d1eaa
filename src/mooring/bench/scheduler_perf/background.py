"""Operations beside the others, until the workload ends: objects that come and go, pods that are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from urllib.parse import urlencode

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.bench.scheduler_perf.creating import Templates
from mooring.bench.scheduler_perf.manifests import PODS
from mooring.bench.scheduler_perf.operations import Churn, DeletePods
from mooring.bench.scheduler_perf.templates import Document
from mooring.client import ApiClient
from mooring.client.api import path_of
from mooring.client.rest_mapper import RestMapper
from mooring.objects import Kind

LONG_SECONDS = 600.0
"""A request that deletes thousands of pods."""
NOT_FOUND = 404


async def ticks(clock: Clock, interval: float) -> AsyncIterator[None]:
    """One at each interval. Those that are missed are dropped, as Go's ticker drops them."""
    due = clock.monotonic()
    while True:
        due += interval
        await clock.sleep(max(due - clock.monotonic(), 0.0))
        due = max(due, clock.monotonic() - interval)
        yield


async def churn(
    operation: Churn, client: ApiClient, templates: Templates, namespace: str
) -> Callable[[], Awaitable[None]]:
    """Read what is to be created. Returns what runs until it is cancelled."""
    mapper = RestMapper(client)
    kinds: list[tuple[Kind, Document]] = []
    for path in operation.template_paths:
        document = templates.get(path).render(0, 1)
        kinds.append((await mapper.kind(document["apiVersion"], document["kind"]), document))

    async def run() -> None:
        slots = operation.number or 1
        created: list[list[str]] = [[""] * slots for _ in kinds]
        count = 0
        async for _ in ticks(client.clock, operation.interval_milliseconds / 1000):
            for names, (kind, document) in zip(created, kinds, strict=True):
                if operation.mode == "create":
                    await _try_create(client, kind, document, namespace)
                else:
                    name = names[count % slots]
                    names[count % slots] = await _swap(client, kind, document, namespace, name)
            count += 1
            if operation.mode == "create" and operation.number and count >= operation.number:
                return

    return run


async def _swap(client: ApiClient, kind: Kind, document: Document, namespace: str, name: str) -> str:
    """Delete the object of this name, or create one where there is none. Returns the name of what is there now."""
    if not name:
        return await _try_create(client, kind, document, namespace)
    await _delete(client, kind, name, namespace)
    return ""


async def _try_create(client: ApiClient, kind: Kind, document: Document, namespace: str) -> str:
    try:
        created = await client.create(kind, document, namespace if kind.namespaced else None)
    except ApiError:
        return ""
    name: str = created["metadata"]["name"]
    return name


async def _delete(client: ApiClient, kind: Kind, name: str, namespace: str) -> None:
    try:
        await client.delete(kind, name, namespace if kind.namespaced else None)
    except ApiError as error:
        # A scheduler preempts pods of a churn, too.
        if error.code != NOT_FOUND:
            raise


async def delete_pods(operation: DeletePods, client: ApiClient) -> None:
    """Delete the pods that are there now: so many a second, or all by one request."""
    if not operation.delete_pods_per_second:
        await delete_all(client, PODS, operation.namespace, operation.label_selector)
        return
    found = await client.list(PODS, operation.namespace, label_selector=_selector(operation.label_selector))
    pace = ticks(client.clock, 1 / operation.delete_pods_per_second)
    for pod in found:
        await anext(pace)
        await _delete(client, PODS, pod["metadata"]["name"], operation.namespace)


async def delete_all(
    client: ApiClient, kind: Kind, namespace: str, selector: dict[str, str] | None = None, *, grace: int | None = None
) -> None:
    query = {"labelSelector": _selector(selector)} if selector else {}
    options: Document = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    path = path_of(kind, namespace) + (f"?{urlencode(query)}" if query else "")
    await client.transport.request("DELETE", path, msgspec.json.encode(options), seconds=LONG_SECONDS)


def _selector(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in labels.items())


def spawn_task(running: Awaitable[None], errors: list[str], what: str) -> asyncio.Task[None]:
    """Run it beside the others; its failure is kept for the end."""

    async def guarded() -> None:
        try:
            await running
        except Exception as error:
            errors.append(f"{what}: {error}")

    return asyncio.create_task(guarded())
