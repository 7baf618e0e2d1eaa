"""docs/operations.md on a real control plane: its commands are run, and the two schedulers take turns as documented.

The cluster's own scheduler is the real kube-scheduler; nodes and controllers are simulated. What would run in Mooring's
pod runs here, with the flags and the account of the Deployment. Where a command needs a kubelet (`exec`, `logs`), a
`kubectl` in between does what the kubelet would: it runs the command beside Mooring, and has no log to show.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.cli.programs import Program, clean_environment
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import ADMIN, SCHEDULER, debian_program
from tests.real_apiserver.deployments import end_namespace
from tests.real_kubectl.conftest import real_program

from mooring.deploy.static_pod import kubeadm_manifest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "operations.md"
NAMESPACE, SHADOW = "mooring-system", "mooring-shadow"
NEEDS_A_PROMETHEUS = "prometheus-server.monitoring"
SECONDS = 120

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: {}
"""
KUBECTL = """\
#!/usr/bin/env bash
set -euo pipefail
for word in "$@"; do
    case "$word" in
    exec)
        while [[ "$1" != -- ]]; do shift; done
        shift
        export KUBECONFIG="$ACCOUNT"
        words=("${{@//os.kill(1,/os.kill($MOORING,}}")
        # Never a signal to this machine's process 1.
        [[ "${{words[*]}}" != *"kill(1,"* && "${{words[*]}}" != *"kill -"* ]]
        exec "${{words[@]//\\/etc\\/mooring\\/config.yaml/scheduler.yaml}}"
        ;;
    logs) exit 0 ;;
    --) break ;;
    esac
done
exec {kubectl} "$@"
"""


def blocks() -> dict[str, list[str]]:
    """The heading of each part → its shell commands."""
    parts = re.split(r"^#{1,2} (.*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        heading: re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }


class Operator:
    """An operator with a terminal, the page, and a control-plane node's files in a folder of their own."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.home = cluster, cluster.home
        self.node = self.home / "node"
        self.account = self.home / "account.kubeconfig"
        self._variables: list[str] = []
        self.running: Program | None = None
        manifests = self.node / "etc/kubernetes/manifests"
        manifests.mkdir(parents=True)
        self.static_pod = manifests / "kube-scheduler.yaml"
        self.static_pod.write_text(yaml.safe_dump(kubeadm_manifest()), encoding="utf-8")
        (self.home / "scheduler.yaml").write_text(CONFIG.format("mooring"), encoding="utf-8")
        (self.home / "same-rules.yaml").write_text(CONFIG.format("default-scheduler"), encoding="utf-8")
        (self.home / "deploy").symlink_to(ROOT / "deploy")
        self._programs = self.home / "bin"
        self._programs.mkdir()
        kubectl = self._programs / "kubectl"
        kubectl.write_text(KUBECTL.format(kubectl=real_program("kubectl")), encoding="utf-8")
        kubectl.chmod(0o755)

    def types(self, block: str) -> None:
        lines = [line for line in block.splitlines() if NEEDS_A_PROMETHEUS not in line]
        script = "\n".join(lines).replace("/etc/kubernetes", str(self.node / "etc/kubernetes"))
        folders = [self._programs, Path(sys.executable).parent, debian_program("prometheus").parent]
        environment = clean_environment(self.home) | {
            "KUBECONFIG": str(self.cluster.control_plane.kubeconfig(ADMIN)),
            "ACCOUNT": str(self.account),
            "MOORING": str(self.running.process.pid if self.running else "not running"),
            "KUBE_EDITOR": "true",
            "PATH": ":".join([*map(str, folders), os.environ["PATH"]]),
        }
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join([*self._variables, script])],
            cwd=self.home,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script}\nended with {done.returncode}:\n{done.stdout}"
        self._variables += [line for line in lines if re.match(r"\w+=", line)]

    def run_the_deployment(self) -> None:
        """What a kubelet would start, with the account's token."""
        deployment = self.cluster.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/mooring")
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        assert "--watch-config" in container["args"]
        path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/mooring/token"
        token = self.cluster.api.create(path, {"spec": {}})["status"]["token"]
        kubeconfig = json.loads(self.cluster.control_plane.kubeconfig(ADMIN).read_text(encoding="utf-8"))
        kubeconfig["users"][0]["user"] = {"token": token}
        self.account.write_text(json.dumps(kubeconfig), encoding="utf-8")
        flags = [flag.replace("/etc/mooring/config.yaml", "scheduler.yaml") for flag in container["args"]]
        flags = [flag for flag in flags if "--secure-port" not in flag]
        self.running = Program("run", *flags, f"--kubeconfig={self.account}", "--secure-port=0", home=self.home)


@pytest.fixture
def operator(cluster: Cluster) -> Iterator[Operator]:
    cluster.nodes(2, "--controllers")
    kubeconfig = cluster.control_plane.kubeconfig(SCHEDULER)
    cluster.kube_scheduler(f"--kubeconfig={kubeconfig}")
    yield Operator(cluster)
    for namespace in (NAMESPACE, SHADOW):
        end_namespace(cluster, namespace)


def test_the_commands_of_the_page_do_what_it_describes(operator: Operator):
    page = blocks()
    for block in page.pop("Install"):
        operator.types(block)
    operator.run_the_deployment()
    assert operator.running is not None
    with operator.running as mooring:
        mooring.ready()
        operator.cluster.bound("try")
        before = operator.static_pod.read_text(encoding="utf-8")
        there, back = page.pop("Switch over from kube-scheduler, and back")
        operator.types(there)
        assert "image: registry.example/mooring:0.1.0" in operator.static_pod.read_text(encoding="utf-8")
        operator.types(back)
        assert operator.static_pod.read_text(encoding="utf-8") == before

        uninstall, leader = page.pop("Uninstall"), page.pop("High availability")
        for block in [*leader, *(block for part in page.values() for block in part)]:
            operator.types(block)
        mooring.mentions("Compared the cache with the API server")
        assert mooring.end() == 0, mooring.written()
    for block in uninstall:
        operator.types(block)


def test_kube_scheduler_and_mooring_take_turns_by_the_lease(cluster: Cluster):
    cluster.nodes(1)
    same = (f"--kubeconfig={cluster.control_plane.kubeconfig(SCHEDULER)}", "--leader-elect=true")
    old = cluster.kube_scheduler(*same)
    cluster.pod("by-the-old-one")
    cluster.bound("by-the-old-one")
    new = cluster.starting_scheduler("--leader-elect=true")
    new.mentions("Standing by to schedule for default-scheduler")
    old.end()
    cluster.pod("by-the-new-one")
    new.ready()
    cluster.bound("by-the-new-one")
    cluster.kube_scheduler(*same)
    assert new.end() == 0, new.written()
    cluster.pod("by-the-old-one-again")
    cluster.bound("by-the-old-one-again")
