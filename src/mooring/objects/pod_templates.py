"""Pod templates: what the pods of one workload have in common, so that it is read once for all of them.

Pods of a Deployment or a Job differ in their names. Whatever depends only on namespace, labels, spec and reported
resources is the same for all of them. It is kept as long as there is room for it, or a pod of the template is known.

Templates that differ only in what containers request are a family: where no two pods request the same, what most
plugins read is still the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec

from mooring.base.bounded import BoundedCache
from mooring.objects.notes import Notes

if TYPE_CHECKING:
    from mooring.objects.core import Container, Pod, PodSpec, PodStatus
    from mooring.objects.requests import PodRequests

MOST_CACHED_BYTES = 16 * 1024 * 1024
TEMPLATE_BYTES = 1024
"""About what one takes in memory, besides its text."""

_encode = msgspec.msgpack.Encoder().encode


class TemplateFamily:
    """One for all templates that are alike but for the requests and limits of containers; compared by identity."""

    __slots__ = ("__weakref__", "_notes")

    def __init__(self) -> None:
        self._notes = Notes()

    @property
    def notes(self) -> Notes:
        """What was read of such pods, as far as it depends on no request; as little as of a template."""
        return self._notes


class PodTemplate:
    """One for all pods that are alike; compared by identity."""

    __slots__ = ("__weakref__", "_family", "_notes", "_requests")

    def __init__(self, family: TemplateFamily) -> None:
        self._family = family
        self._requests: PodRequests | None = None
        self._notes = Notes()

    @property
    def family(self) -> TemplateFamily:
        return self._family

    @property
    def notes(self) -> Notes:
        """What was read of such pods; little, because it lives as long as the template."""
        return self._notes

    @property
    def requests(self) -> PodRequests | None:
        """What scheduling counts for such a pod, once it was read."""
        return self._requests

    def keep_requests(self, requests: PodRequests) -> None:
        self._requests = requests


_known: BoundedCache[bytes, PodTemplate] = BoundedCache(MOST_CACHED_BYTES)
_families: BoundedCache[bytes, TemplateFamily] = BoundedCache(MOST_CACHED_BYTES)


def template_of(pod: Pod) -> PodTemplate:
    metadata, status = pod.metadata, pod.status
    reported = None
    if status.container_statuses or status.init_container_statuses or status.resources is not None:
        reported = status
    text = _encode((metadata.namespace, metadata.labels, pod.spec, reported))
    known = _known.get(text)
    if known is not None:
        return known
    return _known.put(text, PodTemplate(_family_of(pod, reported)), len(text) + TEMPLATE_BYTES)


def _family_of(pod: Pod, reported: PodStatus | None) -> TemplateFamily:
    metadata, spec = pod.metadata, pod.spec
    of_spec, of_container = _readers()
    containers = [[of_container(each) for each in some] for some in (spec.containers, spec.init_containers)]
    text = _encode((metadata.namespace, metadata.labels, of_spec(spec), containers, reported))
    known = _families.get(text)
    return _families.put(text, TemplateFamily(), len(text) + TEMPLATE_BYTES) if known is None else known


@cache
def _readers() -> tuple[Callable[[PodSpec], Any], Callable[[Container], Any]]:
    """Of a spec all but containers, and of a container all but requests and limits: whatever fields there are."""
    from mooring.objects.core import Container, PodSpec, ResourceRequirements

    of_spec = [field for field in PodSpec.__struct_fields__ if field not in ("containers", "init_containers")]
    of_container = [field for field in Container.__struct_fields__ if field != "resources"]
    of_resources = [field for field in ResourceRequirements.__struct_fields__ if field not in ("requests", "limits")]
    return attrgetter(*of_spec), attrgetter(*of_container, *(f"resources.{field}" for field in of_resources))
