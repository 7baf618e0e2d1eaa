"""All pods of a cluster scheduled once more, as if they were created at once, in the order in which they were."""

from __future__ import annotations

import msgspec

from mooring.objects import Pod
from mooring.simulator.scenario import Cluster

MIRROR = "kubernetes.io/config.mirror"


def unplaced(cluster: Cluster) -> Cluster:
    """The cluster with its pods taken off their nodes, but for those that belong to one: of DaemonSets, and static."""
    pods = [pod if stays(pod) or not pod.spec.node_name else _taken_off(pod) for pod in cluster.pods]
    pods.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.key))
    return msgspec.structs.replace(cluster, pods=pods)


def stays(pod: Pod) -> bool:
    """Whether the pod can run on its node only."""
    owners = pod.metadata.owner_references
    return MIRROR in pod.annotations or any(
        owner.controller and owner.kind in ("DaemonSet", "Node") for owner in owners
    )


def _taken_off(pod: Pod) -> Pod:
    status = msgspec.structs.replace(pod.status, phase="Pending", nominated_node_name="", start_time=None)
    return Pod(metadata=pod.metadata, spec=msgspec.structs.replace(pod.spec, node_name=""), status=status)
