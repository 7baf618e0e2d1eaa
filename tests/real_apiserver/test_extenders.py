"""The same extender with Mooring and with the real kube-scheduler: both send the same requests and decide alike."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.cli.programs import Program
from tests.real_apiserver.cluster import PODS, Cluster
from tests.real_apiserver.control_plane import SCHEDULER
from tests.real_kubectl.conftest import real_program

Reply = Callable[[dict[str, Any]], Any]

BOTH = pytest.mark.parametrize("scheduler", ["mooring", "kube-scheduler"])


class Recorded:
    """The requests that the extender received, and its replies; None is a failure (500)."""

    def __init__(self, replies: dict[str, Reply]) -> None:
        self.replies = replies
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.url = ""

    def about(self, verb: str, pod: str) -> list[dict[str, Any]]:
        return [
            request for each, request in self.requests if each == verb and request["Pod"]["metadata"]["name"] == pod
        ]


@contextmanager
def an_extender(**replies: Reply) -> Iterator[Recorded]:
    recorded = Recorded(replies)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            verb = self.path.rpartition("/")[2]
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            recorded.requests.append((verb, request))
            reply = recorded.replies[verb](request)
            self.send_response(200 if reply is not None else 500)
            self.end_headers()
            self.wfile.write(json.dumps(reply).encode())

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    recorded.url = f"http://127.0.0.1:{server.server_port}/extend"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield recorded
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def scheduling(cluster: Cluster, scheduler: str, *extenders: dict[str, Any]) -> Iterator[None]:
    """Either scheduler, with these extenders."""
    kubeconfig = str(cluster.control_plane.kubeconfig(SCHEDULER))
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": kubeconfig},
        "extenders": list(extenders),
    }
    path = cluster.home / "extenders.yaml"
    path.write_text(json.dumps(document), encoding="utf-8")
    if scheduler == "mooring":
        cluster.scheduler(f"--config={path}")
        yield
        return
    program = [str(real_program("kube-scheduler"))]
    with Program(f"--config={path}", "--secure-port=0", home=cluster.home, program=program):
        yield


def names_of(request: dict[str, Any]) -> list[str]:
    if request["NodeNames"] is not None:
        return sorted(request["NodeNames"])
    return sorted(node["metadata"]["name"] for node in request["Nodes"]["items"])


@BOTH
def test_filtering_and_scoring(cluster: Cluster, scheduler: str):
    def filtered(request: dict[str, Any]) -> dict[str, Any]:
        if request["Pod"]["metadata"]["name"] == "picky":
            failed = {"FailedNodes": {"node-1": "too hot"}, "FailedAndUnresolvableNodes": {"node-2": "leaks"}}
            return {"Nodes": {"items": []}, **failed}
        items = [node for node in request["Nodes"]["items"] if node["metadata"]["name"] != "node-1"]
        return {"nodes": {"items": items}, "failedNodes": {"node-1": "too hot"}}

    def scored(request: dict[str, Any]) -> list[dict[str, Any]]:
        return [{"Host": name, "Score": 10 if name == "node-3" else 0} for name in names_of(request)]

    cluster.nodes(3)
    with an_extender(filter=filtered, prioritize=scored) as extender:
        config = {"urlPrefix": extender.url, "filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 100}
        with scheduling(cluster, scheduler, config):
            cluster.pod("web")
            assert cluster.bound("web") == "node-3"
            [request] = extender.about("filter", "web")
            assert sorted(request) == ["NodeNames", "Nodes", "Pod"]
            assert (request["NodeNames"], names_of(request)) == (None, ["node-1", "node-2", "node-3"])
            node = request["Nodes"]["items"][0]
            assert node["status"]["nodeInfo"]["kubeletVersion"]
            assert node["metadata"]["managedFields"]
            assert request["Pod"]["spec"]["terminationGracePeriodSeconds"] == 1
            assert "managedFields" not in request["Pod"]["metadata"]
            [request] = extender.about("prioritize", "web")
            assert names_of(request) == ["node-2", "node-3"]

            cluster.pod("picky")
            assert cluster.refused("picky")["message"] == (
                "0/3 nodes are available: 1 leaks, 1 too hot. no new claims to deallocate, preemption: 0/3 nodes are "
                "available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling."
            )


@BOTH
def test_failing_and_being_ignored(cluster: Cluster, scheduler: str):
    cluster.nodes(1)
    with an_extender(filter=lambda _: None) as down, an_extender(filter=lambda _: None) as ignored:
        configs = [
            {"urlPrefix": ignored.url, "filterVerb": "filter", "nodeCacheCapable": True, "ignorable": True},
            {"urlPrefix": down.url, "filterVerb": "filter", "nodeCacheCapable": True},
        ]
        with scheduling(cluster, scheduler, *configs):
            cluster.pod("web")
            message = cluster.refused("web", "SchedulerError")["message"]
            assert message == f"failed filter with extender at URL {down.url}/filter, code 500"
            assert not ignored.requests, "ignorable extenders are called last"
            down.replies["filter"] = lambda request: {"NodeNames": request["NodeNames"]}
            assert cluster.bound("web") == "node-1"
            assert ignored.requests


@BOTH
def test_binding_what_it_manages(cluster: Cluster, scheduler: str):
    def bind(request: dict[str, Any]) -> dict[str, Any]:
        name = request["PodName"]
        target = {"kind": "Node", "name": request["Node"]}
        binding = {"metadata": {"name": name, "uid": request["PodUID"]}, "target": target}
        cluster.api.create(f"{PODS}/{name}/binding", {"apiVersion": "v1", "kind": "Binding"} | binding)
        return {}

    cluster.nodes(1)
    with an_extender(bind=bind) as extender:
        managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}]
        config = {"urlPrefix": extender.url, "bindVerb": "bind", "managedResources": managed}
        with scheduling(cluster, scheduler, config):
            cluster.pod("plain")
            assert cluster.bound("plain") == "node-1"
            assert not extender.requests
            gpu = {"example.com/gpu": "1"}
            container = {"name": "main", "image": "pause", "resources": {"requests": gpu, "limits": gpu}}
            pod = cluster.pod("fast", containers=[container])
            assert cluster.bound("fast") == "node-1"
            [(_, request)] = extender.requests
            uid = pod["metadata"]["uid"]
            assert request == {"PodName": "fast", "PodNamespace": "default", "PodUID": uid, "Node": "node-1"}
            assert cluster.event("fast", "Scheduled")


@BOTH
@pytest.mark.parametrize("is_capable", [False, True], ids=["whole-pods", "uids"])
def test_preempting(cluster: Cluster, scheduler: str, is_capable: bool):
    requests: list[dict[str, Any]] = []

    def preempt(request: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        if is_capable:
            victims = request["NodeNameToMetaVictims"]
        else:
            victims = {
                node: {"Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]]}
                for node, victims in request["NodeNameToVictims"].items()
            }
        return {"NodeNameToMetaVictims": {"node-2": victims["node-2"]}}

    cluster.priority("low", 10)
    cluster.priority("high", 1000)
    cluster.nodes(2)
    with an_extender(preempt=preempt) as extender:
        config = {"urlPrefix": extender.url, "preemptVerb": "preempt", "nodeCacheCapable": is_capable}
        for name in ("node-1", "node-2"):
            cluster.pod(f"on-{name}", cpu="4", priorityClassName="low", nodeName=name)
            cluster.running(f"on-{name}")
        with scheduling(cluster, scheduler, config):
            cluster.pod("shop", cpu="4", priorityClassName="high")
            assert cluster.bound("shop") == "node-2"
            cluster.gone("on-node-2")
            assert cluster.api.get(f"{PODS}/on-node-1")["status"]["phase"] == "Running"
    request = requests[0]
    assert sorted(request) == ["NodeNameToMetaVictims", "NodeNameToVictims", "Pod"]
    given, other = (
        ("NodeNameToMetaVictims", "NodeNameToVictims") if is_capable else ("NodeNameToVictims", "NodeNameToMetaVictims")
    )
    assert request[other] is None
    assert sorted(request[given]) == ["node-1", "node-2"]
    assert sorted(request[given]["node-1"]) == ["NumPDBViolations", "Pods"]
