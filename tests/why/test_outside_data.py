"""What plugins read of other systems, in a recomputation: fetched once, with its time, or named as missing."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from mooring.client import Connection
from mooring.config import Configuration, default_configuration, load_configuration
from mooring.plugins.catalogue import catalogue
from mooring.simulator import Cluster
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
