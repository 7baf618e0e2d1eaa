"""TargetLoadPacking with a real Prometheus, and with load watchers that hang or send garbage."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from tests.ports import free_ports
from tests.real_kubectl.conftest import TIMEOUT_SECONDS, Up, mooring_up

CPU, MEMORY = "instance:node_cpu:ratio", "instance:node_memory_utilisation:ratio"
LOADS = {"node-1": "0.9", "node-2": "0.5", "node-3": "0.01", "ghost": "0.5"}
RULES = f"""
groups:
- name: loads
  interval: 1s
  rules:
  - {{record: "{CPU}", expr: measured_cpu}}
  - {{record: "{MEMORY}", expr: measured_cpu}}
"""


class Pages(BaseHTTPRequestHandler):
    """What nodes expose, and load watchers that are not well."""

    ended = threading.Event()

    def do_GET(self) -> None:
        if self.path.startswith("/hanging"):
            self.ended.wait(TIMEOUT_SECONDS)
            return
        text = "<html>no report</html>"
        if self.path == "/metrics":
            text = "".join(f'measured_cpu{{instance="{node}:9100"}} {load}\n' for node, load in LOADS.items())
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def pages() -> Iterator[str]:
    Pages.ended.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    Pages.ended.set()
    server.shutdown()
    server.server_close()
    thread.join()


def prometheus_program() -> str:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("MOORING_CACHE") or caches / "mooring") / "debian" / "prometheus" / "usr" / "bin"
    path = shutil.which("prometheus") or str(cache / "prometheus")
    if os.access(path, os.X_OK):
        return path
    reason = f"there is no prometheus on the PATH or at {path}; `scripts/install-debian` gets it"
    if os.environ.get("REQUIRE_REAL"):
        pytest.fail(f"REQUIRE_REAL is set, and {reason}", pytrace=False)
    pytest.skip(reason)


@pytest.fixture
def prometheus(pages: str, tmp_path: Path) -> Iterator[str]:
    """A real Prometheus that has loads of all nodes."""
    (tmp_path / "rules.yaml").write_text(RULES, encoding="utf-8")
    scrape = {"job_name": "nodes", "scrape_interval": "1s", "honor_labels": True}
    config = {"rule_files": ["rules.yaml"], "scrape_configs": [scrape | {"static_configs": [{"targets": [pages]}]}]}
    (tmp_path / "prometheus.yaml").write_text(json.dumps(config), encoding="utf-8")
    address = f"127.0.0.1:{free_ports(1)[0]}"
    command = [prometheus_program(), f"--config.file={tmp_path / 'prometheus.yaml'}", f"--web.listen-address={address}"]
    process = subprocess.Popen(
        [*command, f"--storage.tsdb.path={tmp_path / 'data'}"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while _series(f"http://{address}", MEMORY) < len(LOADS):
            assert process.poll() is None, "Prometheus has ended"
            assert time.monotonic() < deadline, "Prometheus has no loads"
            time.sleep(0.2)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(60)


def _series(address: str, query: str) -> int:
    url = f"{address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with contextlib.suppress(OSError), opener.open(url, timeout=10) as response:
        return len(json.load(response)["data"]["result"])
    return 0


def configured(**arguments: object) -> dict[str, str]:
    profile = {
        "plugins": {"score": {"enabled": [{"name": "TargetLoadPacking", "weight": 100}]}},
        "pluginConfig": [{"name": "TargetLoadPacking", "args": {"targetUtilization": 80, **arguments}}],
    }
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {"config.yaml": json.dumps(kind | {"profiles": [profile]})}


def schedule(kubectl: Up, pod: str) -> str:
    kubectl.run("run", pod, "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=60s")
    return kubectl.out("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


def test_pods_are_packed_by_the_loads_of_prometheus(prometheus: str):
    files = configured(metricProvider={"type": "Prometheus", "address": prometheus})
    with mooring_up("--nodes=3", "--config=config.yaml", files=files) as kubectl:
        kubectl.mooring.mentions('"Node loads are known" nodes=3')
        kubectl.mooring.mentions("4 of nodes that do not exist, such as ghost")
        assert schedule(kubectl, "web") == "node-2"
        assert "TargetLoadPacking read loads of 3 nodes, measured until" in kubectl.explain("web")


@pytest.mark.parametrize(
    ("path", "cause"),
    [("hanging", "did not respond within 10 s"), ("garbage", "something that is not the report of a load watcher")],
)
def test_pods_are_scheduled_whatever_a_load_watcher_sends(pages: str, path: str, cause: str):
    files = configured(watcherAddress=f"http://{pages}/{path}")
    with mooring_up("--nodes=3", "--config=config.yaml", files=files) as kubectl:
        assert schedule(kubectl, "web")
        kubectl.mooring.mentions(cause)
        kubectl.mooring.mentions("Node loads cannot be fetched")
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while "LoadSourceFailed" not in (
            shown := kubectl.out("events", "-n", "kube-system", "--for", "lease/kube-scheduler")
        ):
            assert time.monotonic() < deadline, shown
            time.sleep(0.5)
        assert cause in shown
