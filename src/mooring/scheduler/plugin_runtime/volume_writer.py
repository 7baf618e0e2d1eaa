"""The `VolumeWriter` service: what a plugin decided about volumes, written to the API server.

Only the fields in question are patched, because our structs lack some fields of a volume; the resourceVersion in the
patch makes it as conditional as an update.
"""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.client import ApiClient
from mooring.objects.meta import ObjectMeta
from mooring.objects.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, PersistentVolume, PersistentVolumeClaim


class ApiVolumeWriter:
    """The `VolumeWriter` service."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def write_claim_ref(self, volume: PersistentVolume) -> PersistentVolume:
        body = {
            "metadata": _precondition(volume.metadata, BOUND_BY_CONTROLLER),
            "spec": {"claimRef": msgspec.to_builtins(volume.spec.claim_ref)},
        }
        written = await self._client.patch(PersistentVolume.KIND, volume.name, None, body, form="merge")
        return msgspec.convert(written, PersistentVolume)

    async def write_selected_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        body = {"metadata": _precondition(claim.metadata, SELECTED_NODE)}
        written = await self._client.patch(PersistentVolumeClaim.KIND, claim.name, claim.namespace, body, form="merge")
        return msgspec.convert(written, PersistentVolumeClaim)


def _precondition(metadata: ObjectMeta, annotation: str) -> dict[str, Any]:
    """The annotation, if there is one, for this very version of the object."""
    metadata_patch: dict[str, Any] = {"resourceVersion": metadata.resource_version}
    if (value := metadata.annotations.get(annotation)) is not None:
        metadata_patch["annotations"] = {annotation: value}
    return metadata_patch
