"""The real kube-scheduler and Mooring are scraped after the same work: names, types, labels and buckets are equal."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families
from tests.cli.programs import Program
from tests.ports import free_ports
from tests.real_apiserver.cluster import NODES, Cluster, Document
from tests.real_apiserver.control_plane import SCHEDULER

COMPARED = ("scheduler_", "leader_election_", "rest_client_", "kubernetes_", "process_", "workqueue_", "kube_pod_")
SCRAPED = ("/metrics", "/metrics/resources", "/metrics/slis")

ABSENT = {
    "scheduler_batch_attempts": "there are no hints of a node: remembered scores take their place",
    "scheduler_batch_cache_flushed": "likewise",
    "scheduler_get_node_hint_duration_seconds": "likewise",
    "scheduler_store_schedule_results_duration_seconds": "likewise",
    "rest_client_transport_cache_entries": "client-go's own machinery",
    "rest_client_transport_create_calls": "likewise",
    "rest_client_transport_cert_rotation_gc_calls": "likewise",
    "rest_client_exec_plugin_certificate_rotation_age": "likewise",
    "rest_client_exec_plugin_ttl_seconds": "likewise",
    "process_network_receive_bytes": "Python's client does not count it",
    "process_network_transmit_bytes": "likewise",
    "process_virtual_memory_max_bytes": "likewise",
}
"""Metrics of kube-scheduler that Mooring lacks, and why; `docs/deviations.md` lists them for users."""
MACHINERY = ("workqueue_",)
"""Prefixes of what only kube-scheduler's libraries have."""


@dataclass(frozen=True)
class Shape:
    """All of a metric that a dashboard depends on."""

    type: str
    labels: frozenset[str]
    buckets: tuple[str, ...] = ()
    stability: str = ""


def shapes(text: str) -> dict[str, Shape]:
    """Name → shape, of all metrics that have series."""
    found = {}
    for family in text_string_to_metric_families(text):
        if not family.samples or not family.name.startswith(COMPARED):
            continue
        buckets = dict.fromkeys(sample.labels["le"] for sample in family.samples if "le" in sample.labels)
        labels = frozenset(label for sample in family.samples for label in sample.labels) - {"le"}
        stability = family.documentation.partition("]")[0].lstrip("[")
        if family.name.startswith("process_"):
            stability = ""  # Prometheus' own, of which Kubernetes promises nothing
        found[family.name] = Shape(family.type, labels, tuple(buckets), stability)
    return found


def series(text: str, name: str, /, **labels: str) -> float:
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


class Scraped:
    """The pages that a scheduler serves."""

    def __init__(self, port: int) -> None:
        self._port = port

    def get(self, path: str) -> str:
        # Whose certificate it is does not matter here.
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, context=context, timeout=60)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            text = response.read().decode()
            assert response.status == 200, text
            return text
        finally:
            connection.close()


def serving_flags(cluster: Cluster, port: int) -> list[str]:
    kubeconfig = cluster.control_plane.kubeconfig(SCHEDULER)
    return [
        f"--secure-port={port}",
        "--bind-address=127.0.0.1",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--authorization-always-allow-paths=/healthz,{','.join(SCRAPED)}",
    ]


def a_node(name: str) -> Document:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def work(cluster: Cluster, scheduler: Program, scraped: Scraped) -> dict[str, str]:
    """Pods that are placed, refused, gated, woken and preempted; then the pages."""
    cluster.nodes_of([a_node(f"node-{number}") for number in range(2)])
    for number in range(5):
        cluster.pod(f"small-{number}", cpu="500m")
    for number in range(5):
        cluster.bound(f"small-{number}")
    cluster.pod("too-big", cpu="64")
    cluster.refused("too-big")
    cluster.pod("gated", schedulingGates=[{"name": "example.com/later"}])
    cluster.pod("important", cpu="3500m", priorityClassName="important")
    cluster.bound("important")
    # An event that concerns the rejected pod: its hint runs, whatever it returns.
    node = cluster.api.items(NODES)[0]["metadata"]["name"]
    cluster.api.merge(f"{NODES}/{node}", {"metadata": {"labels": {"seen": "yes"}}})

    def look() -> dict[str, str] | None:
        pages = {path: scraped.get(path) for path in SCRAPED}
        return pages if is_at_rest(pages["/metrics"]) else None

    return cluster.until(look, what="everything to be counted")


PLACED = 6


def is_at_rest(text: str) -> bool:
    """Who was refused is not being tried again just now, and what was placed has been counted everywhere."""
    pending = {
        queue: series(text, "scheduler_pending_pods", queue=queue)
        for queue in ("active", "backoff", "unschedulable", "gated")
    }
    cached = {what: series(text, "scheduler_cache_size", type=what) for what in ("assumed_pods", "nodes")}
    counted = (
        series(text, "scheduler_schedule_attempts_total", result="scheduled"),
        series(text, "scheduler_pod_scheduling_attempts_count"),
    )
    return (
        pending == {"active": 0, "backoff": 0, "unschedulable": 1, "gated": 1}
        and cached == {"assumed_pods": 0, "nodes": 2}
        and counted == (PLACED, PLACED)
    )


def test_what_is_scraped_has_the_same_shape(cluster: Cluster):
    cluster.priority("important", 1000)
    their_port, our_port = free_ports(2)
    configuration = cluster.configuration(
        leaderElection={"leaderElect": True},
        clientConnection={"kubeconfig": str(cluster.control_plane.kubeconfig(SCHEDULER)), "qps": 50, "burst": 100},
    )

    flags = serving_flags(cluster, their_port)
    theirs = work(cluster, cluster.kube_scheduler(configuration, *flags), Scraped(their_port))
    cluster.clear()
    flags = serving_flags(cluster, our_port)
    ours = work(cluster, cluster.scheduler(configuration, *flags), Scraped(our_port))

    expected, found = (
        {name: shape for page in pages.values() for name, shape in shapes(page).items()} for pages in (theirs, ours)
    )
    missing = {name for name in expected.keys() - found.keys() - ABSENT.keys() if not name.startswith(MACHINERY)}
    assert not missing, {name: expected[name] for name in missing}
    invented = {name for name in found.keys() - expected.keys() if name.startswith(("scheduler_", "leader_election_"))}
    assert not invented, {name: found[name] for name in invented}
    different = {name for name in expected.keys() & found.keys() if expected[name] != found[name]}
    assert not different, {name: (expected[name], found[name]) for name in different}
    assert not ABSENT.keys() & found.keys(), "what we have needs no excuse"
    for name, labels in SAME_VALUES:
        values = [series(text["/metrics"], name, **labels) for text in (theirs, ours)]
        assert values[0] == values[1], (name, labels, values)


SAME_VALUES: tuple[tuple[str, dict[str, str]], ...] = (
    ("scheduler_schedule_attempts_total", {"result": "scheduled"}),
    ("scheduler_pending_pods", {"queue": "gated"}),
    ("scheduler_pending_pods", {"queue": "unschedulable"}),
    ("scheduler_preemption_victims_count", {}),
    ("scheduler_pod_scheduling_attempts_count", {}),
    ("scheduler_unschedulable_pods", {"plugin": "NodeResourcesFit"}),
    ("scheduler_unschedulable_pods", {"plugin": "SchedulingGates"}),
    ("scheduler_cache_size", {"type": "nodes"}),
    ("scheduler_cache_size", {"type": "pods"}),
    ("leader_election_master_status", {"name": "kube-scheduler"}),
)
