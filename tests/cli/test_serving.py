"""Health and metrics of a running scheduler, as a probe and a Prometheus fetch them."""

from __future__ import annotations

import http.client
import socket
import ssl
import sys
from pathlib import Path

import pytest
import yaml
from tests.cli.conftest import Mooring, Result, write
from tests.cli.programs import PATIENCE_SECONDS, Program, private_home
from tests.ports import free_ports
from tests.scheduler.serving.certificates import an_authority


def fetch(port: int, path: str, token: str = "") -> tuple[int, str]:
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=trusting, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def token_in(kubeconfig: Path) -> str:
    token: str = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    return token


TRAFFIC = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- plugins: {multiPoint: {enabled: [{name: NetworkTraffic}]}}
  pluginConfig:
  - name: NetworkTraffic
    args: {prometheusAddress: "http://127.0.0.1:9"}
"""


def test_a_scheduler_serves_probes_and_its_metrics_and_its_plugins():
    (port,) = free_ports(1)
    with private_home() as home:
        (home / "traffic.yaml").write_text(TRAFFIC, encoding="utf-8")
        options = ("--nodes=1", "--write-kubeconfig=k", "--config=traffic.yaml", f"--secure-port={port}")
        with Program("up", *options, home=home) as program:
            program.ready()
            assert fetch(port, "/readyz?verbose") == (
                200,
                "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
            )
            assert fetch(port, "/metrics")[0] == 403
            token = token_in(home / "k")
            program.mentions("No traffic from Prometheus")
            status, text = fetch(port, "/metrics", token)
            assert status == 200
            assert "networktraffic_prometheus_up 0.0\n" in text
            assert 'scheduler_pending_pods{queue="active"} 0.0\n' in text
            assert 'scheduler_cache_size{type="nodes"} 1.0\n' in text
            assert 'kubernetes_healthcheck{name="shutdown",type="readyz"} 1.0' in fetch(port, "/metrics/slis", token)[1]
            assert "extension-apiserver-authentication" not in program.written()
            assert program.end() == 0


def test_a_port_in_use_is_reported_before_anything_is_scheduled():
    with private_home() as home, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with Program("up", "--nodes=1", "--write-kubeconfig=k", f"--secure-port={port}", home=home) as program:
            program.mentions(f"127.0.0.1:{port} is in use already")
            assert program.ended() == 2


def test_health_probes_a_running_scheduler(mooring: Mooring):
    (port,) = free_ports(1)
    with private_home() as home:
        options = ("--nodes=0", "--write-kubeconfig=k", f"--secure-port={port}")
        with Program("up", *options, home=home) as program:
            program.ready()
            patiently = f"--timeout={PATIENCE_SECONDS:g}s"
            assert mooring("health", f"--port={port}", patiently) == Result(0, "ok\n", "")
            assert mooring("health", f"--port={port}", "--check=readyz", patiently).code == 0
            refused = mooring("health", f"--url=https://127.0.0.1:{port}/metrics", patiently)
            assert refused.code == 1
            assert "responds 403" in refused.err
            untrusted = mooring("health", f"--port={port}", "--ca-file", write("ca.pem", an_authority("x").pem))
            assert untrusted.code == 1
            assert "shows a certificate that is not to be trusted" in untrusted.err
            assert fetch(port, "/configz", token_in(home / "k"))[1].startswith('{"componentconfig":{"kind":')
            assert fetch(port, "/metrics/resources", token_in(home / "k"))[0] == 200
    stopped = mooring("health", f"--port={port}")
    assert stopped.code == 1
    assert f"Nothing listens at https://127.0.0.1:{port}/healthz" in stopped.err


def test_a_scheduler_that_does_not_respond_is_waited_for_until_the_timeout(mooring: Mooring):
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        result = mooring("health", f"--port={silent.getsockname()[1]}", "--timeout=50ms")
    assert result.code == 1
    assert "does not respond within 50ms" in result.err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--url=ftp://x", "must be an http or https address"),
        ("--ca-file=none.pem", "none.pem cannot be used"),
        ("--ca-file=/dev/null", "/dev/null is empty; it must hold a certificate in PEM"),
        ("--timeout=0", "--timeout\n    must be longer than 0"),
    ],
)
def test_what_health_cannot_probe_is_reported(mooring: Mooring, option, message):
    result = mooring("health", option)
    assert result.code == 2
    assert message in result.err


def test_under_kube_schedulers_name_it_is_kube_scheduler():
    """As in an image whose /bin/kube-scheduler is a link to it."""
    with private_home() as home:
        link = home / "kube-scheduler"
        link.symlink_to(Path(sys.executable).parent / "mooring")
        with Program("--version", home=home, program=(str(link),)) as program:
            program.mentions("(kube-scheduler v1.36)")
            assert program.ended() == 0
        with Program("--port=1", "-v=2", home=home, program=(str(link),)) as program:
            program.mentions("was removed from kube-scheduler")
            assert program.ended() == 2
