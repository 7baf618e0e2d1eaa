"""A pod as a manifest to edit in a what-if: what scheduling reads of it, as if it were to be created again."""

from __future__ import annotations

from typing import Any

import msgspec

from mooring.framework import Pod

SET_BY_SERVER = ("nodeName", "priority", "preemptionPolicy")
"""By binding and by admission: a manifest that names them is refused, or would not be decided."""
SUFFIX = "-edited"
LONGEST_NAME = 253


def manifest_of(pod: Pod) -> dict[str, Any]:
    """Under another name: the pod itself stays where it is."""
    spec = msgspec.to_builtins(pod.spec)
    metadata: dict[str, Any] = {
        "name": pod.name[: LONGEST_NAME - len(SUFFIX)] + SUFFIX,
        "namespace": pod.namespace,
    }
    if pod.labels:
        metadata["labels"] = dict(pod.labels)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {field: value for field, value in spec.items() if field not in SET_BY_SERVER},
    }
