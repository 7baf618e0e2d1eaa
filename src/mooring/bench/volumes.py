"""Pods with volumes for the benchmark, each with a claim of its own: after the CSI workloads of scheduler_perf."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.objects import Pod
from mooring.objects.meta import KubeObject
from mooring.testing import a_pod
from mooring.testing.storage import a_claim, a_csi_node, a_storage_class, a_volume, claim_volume

CLAIMS = 5_000
"""So many pods have a claim of their own; those after them share."""
NODES = 5_000
LIMIT = 39
"""Volumes that a node can attach."""


def a_pod_with_a_volume(number: int) -> Pod:
    volumes = [{"projected": {"sources": []}}, claim_volume(f"claim-{number % CLAIMS}")]
    return a_pod(f"pod-{number}", cpu="100m", memory="500Mi", volumes=volumes)


def bound_claims(zone_key: str, zones: int) -> Iterable[KubeObject]:
    """Claims bound to volumes that are each in one zone."""
    yield from _csi_nodes()
    for number in range(CLAIMS):
        yield a_claim(f"claim-{number}", volume=f"volume-{number}")
        yield a_volume(
            f"volume-{number}",
            claim=f"default/claim-{number}",
            phase="Bound",
            on={zone_key: [f"zone-{number % zones}"]},
        )


def waiting_claims(zone_key: str, zones: int) -> Iterable[KubeObject]:
    """Claims for which volumes are made once their pods have nodes, in half of the zones."""
    yield from _csi_nodes()
    yield a_storage_class(allowed=[{zone_key: [f"zone-{number}" for number in range(0, zones, 2)]}])
    for number in range(CLAIMS):
        yield a_claim(f"claim-{number}")


def _csi_nodes() -> Iterable[KubeObject]:
    return (a_csi_node(f"node-{number:05d}", csi=LIMIT) for number in range(NODES))
