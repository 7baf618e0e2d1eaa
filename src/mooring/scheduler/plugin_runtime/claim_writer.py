"""The `ClaimWriter` service: what a plugin decided about ResourceClaims, written to the API server.

Only the fields in question are patched, because our structs lack some fields of a claim; the resourceVersion in the
patch makes it as conditional as an update. What was written is shown to plugins at once, before the watch brings it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from mooring.base.clock import Clock
from mooring.base.errors import ApiError
from mooring.client import ApiClient
from mooring.framework.verdicts import ClaimRelease
from mooring.objects.core import ContainerExtendedResourceRequest, Pod
from mooring.objects.meta import ObjectMeta
from mooring.objects.resource import ResourceClaim
from mooring.scheduler.cycle.pod_patches import is_gone, patch_status
from mooring.scheduler.watching.informers import Informers

FINALIZER = "resource.kubernetes.io/delete-protection"
"""Keeps a claim that holds devices from being deleted."""


class ApiClaimWriter:
    """The `ClaimWriter` service; also deallocates claims that block a pod."""

    def __init__(self, client: ApiClient, informers: Informers, clock: Clock) -> None:
        self._client = client
        self._informers = informers
        self._clock = clock

    async def read(self, claim: ResourceClaim) -> ResourceClaim:
        found = await self._client.get_as(ResourceClaim, claim.name, claim.namespace)
        self._informers.assume(found)
        return found

    async def create(self, claim: ResourceClaim, *, generate_name: str) -> ResourceClaim:
        body = {
            "metadata": {
                "generateName": generate_name,
                "namespace": claim.namespace,
                "annotations": claim.metadata.annotations,
                "ownerReferences": msgspec.to_builtins(claim.metadata.owner_references),
            },
            "spec": msgspec.to_builtins(claim.spec),
        }
        return msgspec.convert(await self._client.create(ResourceClaim.KIND, body, claim.namespace), ResourceClaim)

    async def add_finalizer(self, claim: ResourceClaim) -> ResourceClaim:
        metadata = {"resourceVersion": claim.metadata.resource_version, "finalizers": [FINALIZER]}
        written = await self._client.patch(ResourceClaim.KIND, claim.name, claim.namespace, {"metadata": metadata})
        return self._shown(written)

    async def write_reserved_for(self, claim: ResourceClaim, *, with_allocation: bool) -> ResourceClaim:
        status: dict[str, Any] = {"reservedFor": msgspec.to_builtins(claim.status.reserved_for)}
        allocation = claim.status.allocation
        if allocation is not None and with_allocation:
            status["allocation"] = msgspec.to_builtins(allocation)
        elif allocation is not None and allocation.allocation_timestamp is not None:
            status["allocation"] = {"allocationTimestamp": allocation.allocation_timestamp}
        return await self._write_status(claim, claim.metadata.resource_version, status)

    async def remove_reserved_for(self, claim: ResourceClaim, uid: str) -> ResourceClaim:
        # Only this entry is removed, whatever was written meanwhile.
        body = {"metadata": {"uid": claim.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
        written = await self._client.patch(ResourceClaim.KIND, claim.name, claim.namespace, body, subresource="status")
        return self._shown(written)

    async def delete(self, claim: ResourceClaim) -> None:
        await self._delete(claim.namespace, claim.name, claim.uid)

    async def write_extended_claim(
        self, pod: Pod, claim: ResourceClaim, mappings: Sequence[ContainerExtendedResourceRequest]
    ) -> None:
        status = {"resourceClaimName": claim.name, "requestMappings": msgspec.to_builtins(list(mappings))}
        body = {"metadata": {"uid": pod.uid}, "status": {"extendedResourceClaimStatus": status}}
        await patch_status(self._client, self._clock, pod.namespace, pod.name, body)

    async def release(self, release: ClaimRelease) -> None:
        """Deallocate the claim, delete it, or remove one consumer."""
        if release.delete:
            await self._delete(release.namespace, release.name, release.uid)
            return
        claim = ResourceClaim(metadata=ObjectMeta(namespace=release.namespace, name=release.name, uid=release.uid))
        if release.unreserve:
            await self.remove_reserved_for(claim, release.unreserve)
            return
        status = {"allocation": None, "reservedFor": None, "devices": None}
        await self._write_status(claim, release.resource_version, status)

    async def _write_status(self, claim: ResourceClaim, version: str, status: dict[str, Any]) -> ResourceClaim:
        metadata = {"uid": claim.uid} | ({"resourceVersion": version} if version else {})
        written = await self._client.patch(
            ResourceClaim.KIND,
            claim.name,
            claim.namespace,
            {"metadata": metadata, "status": status},
            subresource="status",
            form="merge",
        )
        return self._shown(written)

    async def _delete(self, namespace: str, name: str, uid: str) -> None:
        body = {"metadata": {"uid": uid, "$deleteFromPrimitiveList/finalizers": [FINALIZER]}}
        try:
            await self._client.patch(ResourceClaim.KIND, name, namespace, body)
            await self._client.delete(ResourceClaim.KIND, name, namespace, uid=uid)
        except ApiError as error:
            if not is_gone(error):
                raise

    def _shown(self, written: dict[str, Any]) -> ResourceClaim:
        claim = msgspec.convert(written, ResourceClaim)
        self._informers.assume(claim)
        return claim
