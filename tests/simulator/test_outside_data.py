"""What plugins read of other systems, where no time passes: fetched once, with its time, or named as missing."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.base.errors import Fault, OperatorMistake
from mooring.client import Connection
from mooring.config import Configuration, default_configuration, load_configuration
from mooring.framework import Http, Objects, Plugin, Rejection
from mooring.objects import OwnerReference, Pod
from mooring.plugins.catalogue import catalogue
from mooring.plugins.community.trimaran.load_sources import MeasuredNode
from mooring.scheduler.plugin_runtime.http_service import HttpFetcher
from mooring.simulator import Arrival, Cluster, Workload, capacity, drain_check, fit, profile, simulate, simulate_each
from mooring.simulator.outside_data import OutsideData
from mooring.testing import a_node_object, a_pod
from mooring.why import Recomputation, fetch_outside_data

NOWHERE = Connection(server="https://cluster.invalid", source="the test", token="t")
PENDING = a_pod("web", cpu="1")
CLUSTER = Cluster([a_node_object("hot"), a_node_object("cold")], [PENDING])
REGISTRY = catalogue()


def configured(address: str) -> Configuration:
    text = f"""\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: TargetLoadPacking, weight: 100}}]}}
  pluginConfig:
  - name: TargetLoadPacking
    args: {{watcherAddress: "{address}"}}
"""
    return load_configuration(text, source="the test", registry=REGISTRY).configuration


@contextlib.contextmanager
def a_watcher(respond: Callable[[], tuple[int, bytes]]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = respond()
            with contextlib.suppress(OSError):  # the client may have given up
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        serving.join()
        server.server_close()


def a_report() -> tuple[int, bytes]:
    loads = {"hot": 90.0, "cold": 10.0}
    nodes = {name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": load}]} for name, load in loads.items()}
    return 200, json.dumps({"window": {"end": int(time.time())}, "data": {"NodeMetricsMap": nodes}}).encode()


def test_loads_are_fetched_once_and_decide():
    with a_watcher(a_report) as address:
        configuration = configured(address)
        outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY)
    with Recomputation(CLUSTER, configuration, REGISTRY, outside_data=outside) as recomputation:
        decision = recomputation.decide(PENDING)
        (note,) = recomputation.notes
    assert decision.node == "cold"
    assert note.startswith("TargetLoadPacking reads loads of 2 nodes, measured until 20")
    assert note.endswith(f", from {address}/watcher.")


def test_a_source_that_fails_is_named():
    with a_watcher(lambda: (500, b"")) as address:
        configuration = configured(address)
        outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY)
    with Recomputation(CLUSTER, configuration, REGISTRY, outside_data=outside) as recomputation:
        assert recomputation.decide(PENDING).node is not None
        assert recomputation.notes == [
            f"TargetLoadPacking reads no loads: {address}/watcher responded with status 500."
        ]


def test_a_source_that_hangs_is_not_waited_for():
    is_over = threading.Event()

    def respond() -> tuple[int, bytes]:
        is_over.wait(60)
        return a_report()

    with a_watcher(respond) as address:
        configuration = configured(address)
        outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY, seconds=0.1)
        is_over.set()
    with Recomputation(CLUSTER, configuration, REGISTRY, outside_data=outside) as recomputation:
        assert recomputation.decide(PENDING).node is not None
        assert recomputation.notes == [
            "TargetLoadPacking reads data of another system, of which none came within 0.1 s."
        ]


def test_a_file_has_no_loads_and_none_are_requested():
    with Recomputation(CLUSTER, configured("http://load-watcher.invalid"), REGISTRY) as recomputation:
        assert recomputation.decide(PENDING).node is not None
        assert recomputation.notes == ["TargetLoadPacking reads data of another system, which is not known here."]


def test_nothing_is_fetched_where_no_plugin_reads_any():
    configuration = default_configuration(REGISTRY)
    outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY)
    with Recomputation(CLUSTER, configuration, REGISTRY, outside_data=outside) as recomputation:
        assert recomputation.notes == []


# What-ifs: no time passes in them


NOT_KNOWN = "TargetLoadPacking reads data of another system, which is not known here."


def a_pod_of(cpu: str = "1") -> Pod:
    """A running pod of a controller."""
    pod = a_pod("app", cpu=cpu, node="hot", owner="app")
    force_setattr(
        pod.metadata, "owner_references", (OwnerReference(kind="ReplicaSet", name="app", uid="app", controller=True),)
    )
    return pod


PLANS = {
    "fit": lambda configuration, outside: fit(
        CLUSTER, a_pod("new", cpu="1"), configuration, count=1, registry=REGISTRY, outside_data=outside
    ),
    "capacity": lambda configuration, outside: capacity(
        CLUSTER,
        Workload([Arrival(0, a_pod("new", cpu="1"))]),
        ["cpu=2,memory=4Gi"],
        configuration,
        registry=REGISTRY,
        outside_data=outside,
    ),
    "drain-check": lambda configuration, outside: drain_check(
        Cluster(CLUSTER.nodes, [a_pod_of()]), ["hot"], configuration, registry=REGISTRY, outside_data=outside
    ),
}


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_plan_without_the_data_is_computed_and_names_it(plan: Callable[[Configuration, None], Any]):
    assert plan(configured("http://load-watcher.invalid"), None).notes == [NOT_KNOWN]


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_plan_uses_the_data_that_was_fetched(plan: Callable[[Configuration, OutsideData], Any]):
    with a_watcher(a_report) as address:
        configuration = configured(address)
        outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY)
    (note,) = plan(configuration, outside).notes
    assert note.startswith("TargetLoadPacking reads loads of 2 nodes, measured until 20")


def test_pods_go_where_the_load_allows_and_each_adds_to_it():
    with a_watcher(a_report) as address:
        configuration = configured(address)
        outside = fetch_outside_data(NOWHERE, CLUSTER, configuration, REGISTRY)
    pods = [Arrival(0, a_pod(f"p-{number}", cpu="1")) for number in range(3)]
    cluster = Cluster(CLUSTER.nodes)
    result = simulate(cluster, pods, configuration, registry=REGISTRY, outside_data=outside, ties="first")
    assert [pod.node for pod in result.pods] == ["cold", "cold", "hot"]


class FetchingInFilter(Plugin):
    """Fetches data while it decides."""

    def __init__(self, http: Http):
        self._http = http

    async def start(self) -> None:
        await self._http.get("http://127.0.0.1:9/")

    def filter(self, pod, node, cycle):
        raise AssertionError("it is left out")


def test_a_plugin_that_fetches_while_it_decides_is_left_out():
    result = fit(CLUSTER, a_pod("new"), profile(enable=[FetchingInFilter]), count=1)
    assert (result.fits, result.notes) == (
        1,
        ["FetchingInFilter fetches data by HTTP while pods are scheduled, which does not happen here: it is left out."],
    )


async def test_no_request_is_sent_on_virtual_time():
    fetcher = HttpFetcher()
    fetcher.is_offline = True
    with pytest.raises(Fault, match="is not requested: this is a simulation"):
        await fetcher.get("http://127.0.0.1:9/")


# Simulations: time passes in them


TWO_PROFILES = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
- schedulerName: loads
  plugins: {multiPoint: {enabled: [{name: TargetLoadPacking}]}}
  pluginConfig: [{name: TargetLoadPacking, args: {watcherAddress: "http://127.0.0.1:9"}}]
"""


def two_profiles() -> Configuration:
    return load_configuration(TWO_PROFILES, source="the test", registry=REGISTRY).configuration


def test_a_profile_without_pods_does_not_keep_the_others_from_being_simulated():
    arrivals = [Arrival(0, a_pod("new"))]
    compared = simulate_each(CLUSTER, arrivals, {"a": None, "b": two_profiles()}, registry=REGISTRY)
    assert [len(result.bound) for result in compared.results.values()] == [2, 2]
    assert fit(CLUSTER, a_pod("new"), two_profiles(), count=1, registry=REGISTRY).notes == []


TAKING_PART = {
    "a pod that arrives": (CLUSTER, [Arrival(0, a_pod("new", scheduler="loads"))]),
    "a pending pod": (Cluster(CLUSTER.nodes, [a_pod("old", scheduler="loads")]), []),
    "pods that are made as they arrive": (CLUSTER, iter([Arrival(0, a_pod("new"))])),
}


@pytest.mark.parametrize(("cluster", "arrivals"), TAKING_PART.values(), ids=TAKING_PART.keys())
def test_a_profile_that_fetches_is_refused_where_its_pods_take_part(cluster: Cluster, arrivals: Any):
    with pytest.raises(OperatorMistake) as refused:
        simulate(cluster, arrivals, two_profiles(), registry=REGISTRY)
    assert [problem.path for problem in refused.value.problems] == ["TargetLoadPacking (community)"]


class CountsNodes(Plugin):
    """Reads nodes by a type of its own."""

    def __init__(self, nodes: Objects[MeasuredNode]):
        self._nodes = nodes

    def filter(self, pod, node, cycle):
        return None if self._nodes.get(node.name) is not None else Rejection("node(s) are not known")


def test_nodes_are_known_by_a_type_of_the_plugin():
    result = simulate(Cluster(CLUSTER.nodes), [Arrival(0, a_pod("new"))], profile(enable=[CountsNodes]))
    assert len(result.bound) == 1
