"""NetworkTraffic with a real Prometheus, real node exporters and the real kubectl: pods go where least is received."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.real_kubectl.conftest import Up, mooring_up
from tests.real_kubectl.walkthrough import walked

EXAMPLE = Path(__file__).parents[2] / "examples" / "network-traffic"
CONFIG = EXAMPLE / "networktraffic-config.yaml"


def cache_folder() -> Path:
    caches = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("MOORING_CACHE") or caches / "mooring")


@pytest.fixture(autouse=True)
def prometheus_programs() -> None:
    """Skip without them, or fail where real parts are required."""
    cache = cache_folder() / "debian"
    for name in ("prometheus", "prometheus-node-exporter"):
        if shutil.which(name) is None and not os.access(cache / name / "usr" / "bin" / name, os.X_OK):
            reason = f"there is no {name} on the PATH or in {cache}; `scripts/install-debian` gets it"
            if os.environ.get("REQUIRE_REAL"):
                pytest.fail(f"REQUIRE_REAL is set, and {reason}", pytrace=False)
            pytest.skip(reason)


class Monitoring:
    """The example's program: Prometheus and an exporter per node."""

    def __init__(self, traffic: dict[str, int]) -> None:
        arguments = [f"{node}={received}" for node, received in traffic.items()]
        self._process = subprocess.Popen(
            [sys.executable, str(EXAMPLE / "traffic.py"), "--port=0", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.exporters: dict[str, int] = {}
        self.address = ""
        for line in self._process.stdout:
            if found := re.match(r"(\S+) has received \d+ bytes \(exporter (\d+)\)", line):
                self.exporters[found[1]] = int(found[2])
            elif found := re.match(r"Prometheus is ready at (\S+)", line):
                self.address = found[1]
                return
        pytest.fail("Prometheus did not start")

    def end(self) -> None:
        self._process.terminate()
        self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def lose(self, node: str) -> None:
        """End a node's exporter; returns when Prometheus knows."""
        os.kill(self.exporters[node], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while not self._query(f'up{{kubernetes_node="{node}"}} == 0'):
            assert time.monotonic() < deadline, f"Prometheus still has series of {node}"
            time.sleep(0.1)

    def _query(self, query: str) -> list[object]:
        url = f"{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": query})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=10) as response:
            result: list[object] = json.load(response)["data"]["result"]
            return result


@pytest.fixture
def monitoring() -> Iterator[Callable[[dict[str, int]], Monitoring]]:
    with contextlib.ExitStack() as running:

        def start(traffic: dict[str, int]) -> Monitoring:
            started = Monitoring(traffic)
            running.callback(started.end)
            return started

        yield start


def schedule(kubectl: Up, pod: str) -> str:
    """Create a pod, wait until it runs; returns its node."""
    kubectl.run("run", pod, "--image=nginx")
    kubectl.run("wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=60s")
    return kubectl.out("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}")


THREE = {"node-1": 1_400_000_000, "node-2": 1_200_000, "node-3": 1_000}


def test_the_pod_goes_to_the_node_that_receives_least(monitoring, monkeypatch: pytest.MonkeyPatch):
    # The file as it is: its address is reached through what stands for the cluster's network here.
    monkeypatch.setenv("http_proxy", monitoring(THREE).address)
    with mooring_up("--nodes=3", "--config=config.yaml", files={"config.yaml": CONFIG.read_text()}) as kubectl:
        kubectl.mooring.mentions('"[NetworkTraffic] Prometheus responds" nodes=3')
        assert schedule(kubectl, "web") == "node-3"
        for node in THREE:
            kubectl.mooring.mentions(f"[NetworkTraffic] node '{node}' bandwidth: ")
        (scores,) = [line.split() for line in kubectl.explain("web").splitlines() if "NetworkTraffic" in line.split()]
        assert scores[2:] == ["100", "1", "100"]


def with_args(**args: object) -> dict[str, str]:
    text = CONFIG.read_text(encoding="utf-8").partition("      prometheusAddress")[0]
    return {"config.yaml": text + "".join(f"      {name}: {value}\n" for name, value in args.items())}


def test_a_node_whose_exporter_is_dead_does_not_win(monitoring):
    prometheus = monitoring(THREE)
    prometheus.lose("node-3")
    files = with_args(prometheusAddress=prometheus.address)
    with mooring_up("--nodes=3", "--config=config.yaml", files=files) as kubectl:
        kubectl.mooring.mentions('"[NetworkTraffic] Prometheus responds" nodes=2')
        assert schedule(kubectl, "web") == "node-2"
        kubectl.mooring.mentions('source="no fresh sample: the median"')


def test_pods_are_scheduled_when_prometheus_has_gone(monitoring):
    prometheus = monitoring(THREE)
    files = with_args(prometheusAddress=prometheus.address, refreshSeconds=2)
    with mooring_up("--nodes=3", "--config=config.yaml", files=files) as kubectl:
        kubectl.mooring.mentions('"[NetworkTraffic] Prometheus responds" nodes=3')
        prometheus.end()
        kubectl.mooring.mentions("No traffic from Prometheus; the last values count")
        assert schedule(kubectl, "soon") in THREE
        kubectl.mooring.mentions("the last values are stale; every node counts alike")
        assert schedule(kubectl, "later") in THREE


def test_the_walk_shows_what_its_readme_shows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MOORING_CACHE", str(cache_folder()))  # a reader's home is a folder of its own
    with walked(EXAMPLE / "README.md") as walk:
        assert len(walk.programs) == 2
