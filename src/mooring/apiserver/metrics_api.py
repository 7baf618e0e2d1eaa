"""metrics.k8s.io: NodeMetrics and PodMetrics, computed by a source when a client reads them (`kubectl top`).

The source is not of this package: on the embedded cluster it is the simulated kubelets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mooring.apiserver.documents import Document
from mooring.apiserver.resources import Resource

GROUP, VERSION = "metrics.k8s.io", "v1beta1"
NODES, PODS = f"nodes.{GROUP}", f"pods.{GROUP}"
_VERBS = ("get", "list")


class MetricsSource(Protocol):
    """What nodes and pods use now. Empty names mean all."""

    def node_metrics(self, name: str = "") -> Iterable[Document]: ...
    def pod_metrics(self, namespace: str = "", name: str = "") -> Iterable[Document]: ...


def metrics_rows(source: MetricsSource) -> list[Resource]:
    """The rows of the resource table."""
    return [
        Resource(
            group=GROUP,
            version=VERSION,
            plural="nodes",
            singular="",
            kind="NodeMetrics",
            namespaced=False,
            verbs=_VERBS,
            list_kind="NodeMetricsList",
            storage=NODES,
            computed=lambda _, name: source.node_metrics(name),
        ),
        Resource(
            group=GROUP,
            version=VERSION,
            plural="pods",
            singular="",
            kind="PodMetrics",
            namespaced=True,
            verbs=_VERBS,
            list_kind="PodMetricsList",
            storage=PODS,
            computed=source.pod_metrics,
        ),
    ]
