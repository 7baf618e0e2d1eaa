"""Writes the status of a custom resource, where it differs from what is there."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from mooring.base.errors import ApiError
from mooring.client import ApiClient
from mooring.client.informer import Informer
from mooring.objects.meta import KubeObject

NOT_FOUND = 404

T = TypeVar("T", bound=KubeObject)


async def write_status(client: ApiClient, informer: Informer[T], item: T, present: Any, wanted: dict[str, Any]) -> bool:
    """Whether anything was written. A conflict (the object has changed since) is raised: sync again."""
    known = msgspec.to_builtins(present)
    if all((known.get(field) or None) == (value or None) for field, value in wanted.items()):
        return False
    metadata = {"uid": item.uid, "resourceVersion": item.metadata.resource_version}
    try:
        patched = await client.patch(
            type(item).KIND,
            item.name,
            item.namespace,
            {"metadata": metadata, "status": wanted},
            subresource="status",
            form="merge",
        )
    except ApiError as error:
        if error.code == NOT_FOUND:
            return False
        raise
    informer.cache_write(msgspec.convert(patched, type(item)))
    return True
