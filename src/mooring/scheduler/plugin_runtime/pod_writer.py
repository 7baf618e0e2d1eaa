"""The `PodWriter` service: annotations and labels that a plugin sets on a pod, written to the API server.

Only the keys in question are patched, so that what other clients write to the pod meanwhile stays; the uid in the
patch is a precondition. The same patch may therefore be sent twice, and is retried as other patches of pods are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mooring.base.clock import Clock
from mooring.client import ApiClient
from mooring.framework import Pod
from mooring.framework.pod_metadata import NOTHING, check_metadata
from mooring.scheduler.cycle.pod_patches import patch_pod


class ApiPodWriter:
    """The `PodWriter` service."""

    def __init__(self, client: ApiClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock

    async def patch(
        self,
        pod: Pod,
        *,
        annotations: Mapping[str, str | None] | None = None,
        labels: Mapping[str, str | None] | None = None,
    ) -> Pod:
        annotations, labels = annotations or NOTHING, labels or NOTHING
        check_metadata(annotations, labels)
        body = {"metadata": {"uid": pod.uid, "annotations": dict(annotations), "labels": dict(labels)}}
        return msgspec.convert(await patch_pod(self._client, self._clock, pod.namespace, pod.name, body), Pod)
