"""The labels by which pods configure these plugins."""

from __future__ import annotations

from mooring.framework import PlacedPod, Pod

GANG = "example.com/gang"
GANG_SIZE = "example.com/gang-size"
PACED = "example.com/paced"
EXPENDABLE = "example.com/expendable"


def group_of(pod: Pod | PlacedPod) -> tuple[str, str] | None:
    """Namespace and name of the pod's gang; None if it has none."""
    name = pod.labels.get(GANG)
    return None if name is None else (pod.namespace, name)
