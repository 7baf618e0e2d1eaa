"""Devices of a workload: the ResourceSlices of a driver, and claims that are allocated before any pod comes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from fnmatch import fnmatchcase

from mooring.bench.scheduler_perf.creating import in_parallel
from mooring.bench.scheduler_perf.manifests import NODES
from mooring.bench.scheduler_perf.operations import CreateResourceDriver, WorkloadError
from mooring.bench.scheduler_perf.templates import Document
from mooring.client import ApiClient
from mooring.objects import Kind

SLICES = Kind("resource.k8s.io", "v1", "ResourceSlice", "resourceslices", namespaced=False)
RESOURCE_CLAIMS = Kind("resource.k8s.io", "v1", "ResourceClaim", "resourceclaims")


async def publish_slices(client: ApiClient, operation: CreateResourceDriver) -> None:
    """One ResourceSlice for each node of the driver."""
    names = [node["metadata"]["name"] for node in await client.list(NODES)]
    slices = (
        resource_slice(operation.driver_name, name, operation.max_claims_per_node)
        for name in names
        if fnmatchcase(name, operation.nodes)
    )
    await in_parallel(slices, lambda each: client.create(SLICES, each))


def resource_slice(driver: str, node: str, devices: int) -> Document:
    return {
        "metadata": {"name": node},
        "spec": {
            "driver": driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"instance-{number}",
                    "attributes": {
                        "model": {"string": "A100"},
                        "family": {"string": "GPU"},
                        "driverVersion": {"version": "1.2.3"},
                        "dra.example.com/numa": {"int": number},
                    },
                    "capacity": {"memory": {"value": "1Gi"}},
                }
                for number in range(devices)
            ],
        },
    }


async def allocate_claims(client: ApiClient, namespace: str) -> None:
    """Give every claim of the namespace a device of some node, in random order."""
    claims = await client.list(RESOURCE_CLAIMS, namespace or None)
    waiting = [claim for claim in claims if not _results(claim)]
    if not waiting:
        return
    in_use = {(each["driver"], each["pool"], each["device"]) for claim in claims for each in _results(claim)}
    free = [device for device in _devices(await client.list(SLICES)) if device[:3] not in in_use]
    random.Random(namespace).shuffle(free)
    if len(waiting) > len(free):
        raise WorkloadError(f"{len(waiting)} claims and only {len(free)} free devices")

    async def allocate(pair: tuple[Document, tuple[str, str, str, str]]) -> None:
        claim, device = pair
        allocated = claim | {"status": {"allocation": _allocation(claim, device)}}
        await client.update(RESOURCE_CLAIMS, allocated, subresource="status")

    await in_parallel(zip(waiting, free, strict=False), allocate)


def _results(claim: Document) -> list[Document]:
    allocation = claim.get("status", {}).get("allocation", {})
    results: list[Document] = allocation.get("devices", {}).get("results", [])
    return results


def _devices(slices: list[Document]) -> Iterator[tuple[str, str, str, str]]:
    """Driver, pool, device and node."""
    for each in slices:
        spec = each["spec"]
        for device in spec.get("devices", ()):
            yield spec["driver"], spec["pool"]["name"], device["name"], spec["nodeName"]


def _allocation(claim: Document, device: tuple[str, str, str, str]) -> Document:
    requests = claim["spec"]["devices"]["requests"]
    exact = requests[0].get("exactly", {})
    if len(requests) != 1 or exact.get("selectors") or exact.get("count", 1) != 1:
        raise WorkloadError("allocResourceClaims allocates claims of one device without selectors only")
    driver, pool, name, node = device
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    result = {"request": requests[0]["name"], "driver": driver, "pool": pool, "device": name}
    return {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [term]}}
