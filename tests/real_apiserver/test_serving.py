"""Responses of Mooring over HTTPS, by client, compared with those of kube-scheduler on the same cluster."""

from __future__ import annotations

import http.client
import json
import re
import ssl
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.programs import Program, private_home
from tests.ports import free_ports
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import ADMIN, FRONT_PROXY, POWERLESS, SCHEDULER, ControlPlane
from tests.real_kubectl.conftest import real_program
from tests.scheduler.serving.certificates import Pair, an_authority

RIGHTS = "/apis/rbac.authorization.k8s.io/v1"
NO_LEASE = "--leader-elect=false"


@dataclass(frozen=True)
class Request:
    """A request, and its credentials."""

    path: str
    token: str = ""
    certificate: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "GET"


AS_ADMIN = {"X-Remote-User": "alice", "X-Remote-Group": "system:masters"}
REQUESTS = {
    "a probe": Request("/healthz"),
    "a probe, check by check": Request("/readyz?verbose"),
    "the livez probe": Request("/livez?verbose"),
    "a probe of one check": Request("/readyz/shutdown"),
    "a probe of one check, by who may": Request("/readyz/shutdown", ADMIN),
    "a probe of a check that is not there": Request("/readyz/moon", ADMIN),
    "a probe without some checks": Request("/readyz?verbose&exclude=shutdown&exclude=moon"),
    "a path that ends in a slash": Request("/healthz/", ADMIN),
    "metrics, without credentials": Request("/metrics"),
    "metrics, with a wrong token": Request("/metrics", "wrong"),
    "metrics, by a user without the right": Request("/metrics", SCHEDULER),
    "metrics, by one who may write them only": Request("/metrics", SCHEDULER, method="DELETE"),
    "a page that is not there": Request("/nowhere", ADMIN),
    "a page that is not there, without credentials": Request("/nowhere"),
    "a certificate without the right": Request("/metrics", certificate="bob"),
    "a certificate and a wrong token": Request("/metrics", "wrong", certificate="bob"),
    "headers without a certificate": Request("/metrics", headers=AS_ADMIN),
    "headers with a user's certificate": Request("/metrics", certificate="bob", headers=AS_ADMIN),
    "headers of a client that is no front proxy": Request("/metrics", certificate="unlisted", headers=AS_ADMIN),
    "a front proxy that names no user": Request("/metrics", certificate="proxy"),
    "a front proxy that names one without the right": Request(
        "/metrics", certificate="proxy", headers={"X-Remote-User": "alice"}
    ),
    "status in an unknown form": Request("/statusz", ADMIN, headers={"Accept": "application/json"}),
    "the verbosity, read": Request("/debug/flags/v", ADMIN),
}
PAGES = {
    "metrics": Request("/metrics", ADMIN),
    "metrics of pods": Request("/metrics/resources", ADMIN),
    "metrics of checks": Request("/metrics/slis", ADMIN),
    "an administrator's certificate": Request("/metrics", certificate="root"),
    "a front proxy that names an administrator": Request("/metrics", certificate="proxy", headers=AS_ADMIN),
    "configuration": Request("/configz", ADMIN),
    "flags": Request("/flagz", ADMIN),
    "status": Request("/statusz", ADMIN),
}
FLAGZ = {"Accept": "application/json;v=v1beta1;g=config.k8s.io;as=Flagz"}
STATUSZ = {"Accept": "application/json;v=v1beta1;g=config.k8s.io;as=Statusz"}


@dataclass(frozen=True)
class Response:
    code: int
    type: str
    text: str


@dataclass
class Both:
    """Both schedulers, serving on the same cluster, and client certificates."""

    theirs: int
    ours: int
    certificates: Mapping[str, Pair]
    folder: Path

    def send(self, port: int, request: Request) -> Response:
        context = ssl.create_default_context()
        if request.certificate:
            context = self.certificates[request.certificate].client_context(self.folder)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        headers = {"Authorization": f"Bearer token-of-{request.token}"} if request.token else {}
        connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=60)
        try:
            connection.request(request.method, request.path, headers={**headers, **request.headers})
            response = connection.getresponse()
            return Response(response.status, response.headers["Content-Type"], response.read().decode())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def both(control_plane: ControlPlane) -> Iterator[Both]:
    clients, front = control_plane.clients, control_plane.front_proxies
    certificates = {
        "bob": clients.issue("bob", ["dev"]),
        "root": clients.issue("root", ["system:masters"]),
        "proxy": front.issue(FRONT_PROXY),
        "unlisted": front.issue("unlisted"),
        "mallory": an_authority("clients").issue("root", ["system:masters"]),
    }
    theirs, ours = free_ports(2)
    kubeconfig = control_plane.kubeconfig(SCHEDULER)
    flags = [f"--{kind}kubeconfig={kubeconfig}" for kind in ("", "authentication-", "authorization-")]
    real = (str(real_program("kube-scheduler")),)
    with (
        private_home() as home,
        Program(*flags, NO_LEASE, f"--secure-port={theirs}", "-v=3", home=home, program=real) as kube_scheduler,
        Program("run", *flags, NO_LEASE, f"--secure-port={ours}", home=home) as mooring,
    ):
        kube_scheduler.mentions("Handlers synced")
        mooring.ready()
        yield Both(theirs, ours, certificates, home)


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS.keys())
def test_both_respond_alike(both: Both, sent):
    assert both.send(both.ours, sent) == both.send(both.theirs, sent)


@pytest.mark.parametrize("sent", PAGES.values(), ids=PAGES.keys())
def test_an_authorized_client_gets_the_page_from_both(both: Both, sent):
    theirs, ours = both.send(both.theirs, sent), both.send(both.ours, sent)
    assert (theirs.code, ours.code) == (200, 200)
    assert ours.type.partition("; escaping")[0] == theirs.type.partition("; escaping")[0]


def test_a_certificate_of_an_unknown_authority_gets_nothing(both: Both):
    unknown = Request("/metrics", certificate="mallory")
    assert both.send(both.theirs, unknown).code == 401
    with pytest.raises(OSError, match=r"(?i)unknown[ _]ca|alert|reset|closed|broken pipe"):
        both.send(both.ours, unknown)


def test_the_configuration_that_holds_is_shown_alike(both: Both):
    theirs, ours = (
        json.loads(both.send(port, Request("/configz", ADMIN)).text)["componentconfig"]
        for port in (both.theirs, both.ours)
    )
    # On purpose: no limit of ours on requests, and all nodes are looked at.
    assert (ours["clientConnection"].pop("qps"), ours["clientConnection"].pop("burst")) == (0, 0)
    assert (theirs["clientConnection"].pop("qps"), theirs["clientConnection"].pop("burst")) == (50, 100)
    assert (ours.pop("percentageOfNodesToScore"), theirs.pop("percentageOfNodesToScore")) == (100, 0)
    assert ours == theirs


def test_flags_and_status_are_served_to_programs_alike(both: Both):
    theirs, ours = (
        json.loads(both.send(port, Request("/flagz", ADMIN, headers=FLAGZ)).text)["flags"]
        for port in (both.theirs, both.ours)
    )
    assert {name: ours.get(name) for name in theirs if name not in ("secure-port", "v")} == {
        name: value for name, value in theirs.items() if name not in ("secure-port", "v")
    }
    theirs, ours = (
        json.loads(both.send(port, Request("/statusz", ADMIN, headers=STATUSZ)).text)
        for port in (both.theirs, both.ours)
    )
    assert ours.keys() == theirs.keys()
    assert (ours["paths"], ours["emulationVersion"]) == (theirs["paths"], theirs["emulationVersion"])


def test_a_right_that_is_given_counts_within_seconds(both: Both, cluster: Cluster):
    request = Request("/metrics", POWERLESS)
    assert both.send(both.ours, request).code == 403
    rule = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "scrapes"}
    cluster.api.create(f"{RIGHTS}/clusterroles", {"metadata": {"name": "scrapes"}, "rules": [rule]})
    binding = {"metadata": {"name": "scrapes"}, "roleRef": role, "subjects": [{"kind": "User", "name": "powerless"}]}
    cluster.api.create(f"{RIGHTS}/clusterrolebindings", binding)
    try:
        cluster.until(lambda: both.send(both.ours, request).code == 200, what="the right to count")
        assert both.send(both.ours, Request("/configz", POWERLESS)).code == 403
    finally:
        cluster.api.delete(f"{RIGHTS}/clusterrolebindings/scrapes")
        cluster.api.delete(f"{RIGHTS}/clusterroles/scrapes")


def test_rights_that_are_missing_are_named(both: Both, cluster: Cluster):
    """Without the right to create reviews all requests are denied, and the log names the missing rights."""
    (port,) = free_ports(1)
    powerless = cluster.control_plane.kubeconfig(POWERLESS)
    flags = [f"--{kind}-kubeconfig={powerless}" for kind in ("authentication", "authorization")]
    program = cluster.scheduler(*flags, NO_LEASE, f"--secure-port={port}")
    program.mentions("extension-apiserver-authentication-reader")
    assert both.send(port, Request("/healthz")).code == 200
    assert both.send(port, Request("/metrics", ADMIN)).code == 401
    program.mentions("create tokenreviews.authentication.k8s.io")
    undecided = both.send(port, Request("/metrics"))
    program.mentions("create subjectaccessreviews.authorization.k8s.io")
    assert undecided.code == 500
    assert re.match(r'Internal Server Error: "/metrics": the SubjectAccessReview failed', undecided.text)
    assert "powerless" not in undecided.text


MIXED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false, leaseDuration: 1m30s}
clientConnection: {kubeconfig: %s, qps: 77.5, burst: 90}
percentageOfNodesToScore: 50
parallelism: 8
extenders:
- urlPrefix: http://127.0.0.1:1/x
  filterVerb: filter
  prioritizeVerb: prioritize
  weight: 3
  httpTimeout: 7s
  nodeCacheCapable: true
  ignorable: true
  enableHTTPS: true
  managedResources: [{name: example.com/foo, ignoredByScheduler: true}]
  tlsConfig: {insecure: true, serverName: x}
profiles:
- schedulerName: a
  percentageOfNodesToScore: 20
  plugins:
    score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeResourcesFit, weight: 7}]}
    multiPoint: {disabled: [{name: NodeAffinity}]}
    filter: {disabled: [{name: "*"}], enabled: [{name: NodeName}]}
  pluginConfig:
  - name: NodeResourcesFit
    args:
      ignoredResourceGroups: [g.io]
      scoringStrategy:
        type: RequestedToCapacityRatio
        resources: [{name: cpu, weight: 2}]
        requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}
  - name: InterPodAffinity
    args: {hardPodAffinityWeight: 5}
  - name: VolumeBinding
    args: {bindTimeoutSeconds: 30}
- schedulerName: b
  pluginConfig:
  - name: NodeAffinity
    args:
      addedAffinity:
        requiredDuringSchedulingIgnoredDuringExecution:
          nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In, values: [b]}]}]
"""


def test_the_completed_configuration_is_written_alike(control_plane: ControlPlane, tmp_path):
    config = tmp_path / "config.yaml"
    config.write_text(MIXED % control_plane.kubeconfig(SCHEDULER), encoding="utf-8")

    def written(name: str, *command: str) -> Any:
        file = tmp_path / name
        with (
            private_home() as home,
            Program(
                f"--config={config}", "--secure-port=0", f"--write-config-to={file}", home=home, program=command
            ) as program,
        ):
            assert program.ended() == 0, program.written()
        return yaml.safe_load(file.read_text(encoding="utf-8"))

    ours = written("ours.yaml", sys.executable, "-m", "mooring", "run")
    assert ours == written("theirs.yaml", str(real_program("kube-scheduler")))
