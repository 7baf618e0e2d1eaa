"""What a test does on the real control plane: nodes, schedulers, pods; and what it waits for."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.cli.programs import PATIENCE_SECONDS, Program
from tests.real_apiserver.control_plane import ADMIN, LOOK_AGAIN_SECONDS, SCHEDULER, ApiError, ControlPlane
from tests.real_kubectl.conftest import Kubectl, real_program

T = TypeVar("T")
Document = dict[str, Any]

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
PRIORITIES = "/apis/scheduling.k8s.io/v1/priorityclasses"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
OURS_ALONE = ("--leader-elect=false",)


class Cluster:
    """One test's view of the control plane. Programs that it starts end with it."""

    def __init__(self, control_plane: ControlPlane, home: Path) -> None:
        self.control_plane, self.home = control_plane, home
        self.api = control_plane.api
        self.kubectl = Kubectl(control_plane.kubeconfig(ADMIN))
        self._programs = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._programs.close()

    # Programs.

    def nodes(self, count: int = 1, *flags: str) -> Program:
        """`mooring nodes`, ready."""
        kubeconfig = f"--kubeconfig={self.control_plane.kubeconfig(ADMIN)}"
        program = self._start("nodes", kubeconfig, f"--nodes={count}", *flags)
        program.ready()
        return program

    def nodes_of(self, documents: Sequence[Document]) -> Program:
        """`mooring nodes` with these nodes, ready."""
        path = self.home / "nodes.yaml"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}), encoding="utf-8")
        program = self._start("nodes", f"--kubeconfig={self.control_plane.kubeconfig(ADMIN)}", f"--cluster={path}")
        program.ready()
        return program

    def kube_scheduler(self, *flags: str) -> Program:
        """The real one; it prints no line when it is ready."""
        command = (str(real_program("kube-scheduler")), "--secure-port=0")
        return self._programs.enter_context(Program(*flags, home=self.home, program=command))

    def scheduler(self, *flags: str) -> Program:
        """`mooring run` with the rights of kube-scheduler, ready."""
        program = self.starting_scheduler(*(flags or OURS_ALONE))
        program.ready()
        return program

    def starting_scheduler(self, *flags: str) -> Program:
        return self._start("run", f"--kubeconfig={self.control_plane.kubeconfig(SCHEDULER)}", "-v=2", *flags)

    def watch(self, path: str) -> Program:
        """A watch of all pods, which writes this (a JSON path of kubectl's) of each change."""
        command = self.kubectl.command("get", "pods", "--watch", f"--output=jsonpath={path}")
        return Program(home=self.home, program=command)

    def page(self, *flags: str) -> Program:
        """`mooring web` of this cluster, with the rights of an administrator."""
        return self._start("web", f"--kubeconfig={self.control_plane.kubeconfig(ADMIN)}", *flags)

    def _start(self, *arguments: str) -> Program:
        return self._programs.enter_context(Program(*arguments, home=self.home))

    def configuration(self, **fields: Any) -> str:
        """The flag that names a configuration with these fields; with the rights of kube-scheduler, and alone."""
        document = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": str(self.control_plane.kubeconfig(SCHEDULER))},
            **fields,
        }
        path = self.home / "configuration.yaml"
        path.write_text(json.dumps(document), encoding="utf-8")
        return f"--config={path}"

    # Objects.

    def pod(
        self,
        name: str,
        *,
        cpu: str = "100m",
        labels: Mapping[str, str] | None = None,
        finalizers: Sequence[str] = (),
        **spec: Any,
    ) -> Document:
        """Create a pod of one container."""
        container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
        document = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": dict(labels or {}), "finalizers": list(finalizers)},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container], **spec},
        }
        created: Document = self.api.create(PODS, document)
        return created

    def priority(self, name: str, value: int, **more: Any) -> None:
        self.api.create(PRIORITIES, {"metadata": {"name": name}, "value": value, **more})

    def pods(self) -> list[Document]:
        return self.api.items(PODS)

    def events(self, pod: str, reason: str) -> list[Document]:
        selector = f"involvedObject.name={pod},reason={reason}"
        return self.api.items(f"/api/v1/namespaces/default/events?fieldSelector={selector}")

    # What is waited for; upper bounds only for a machine that is busy with other things.

    def until(self, look: Callable[[], T | None], *, what: str, seen: Callable[[], object] = lambda: "") -> T:
        """The first result of `look` that is not None or empty; `seen` describes the state if none came in time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if found := look():
                return found
            assert time.monotonic() < deadline, f"waited {PATIENCE_SECONDS:g} s in vain for {what} {seen()}"
            time.sleep(LOOK_AGAIN_SECONDS)

    def bound(self, name: str) -> str:
        """Wait until the pod has its node; gives the node."""

        def look() -> str:
            node: str = self.api.get(f"{PODS}/{name}")["spec"].get("nodeName", "")
            return node

        return self.until(look, what=f"a node for {name}")

    def running(self, name: str) -> Document:
        def look() -> Document | None:
            pod: Document = self.api.get(f"{PODS}/{name}")
            return pod if pod.get("status", {}).get("phase") == "Running" else None

        return self.until(look, what=f"{name} to run")

    def refused(self, name: str, reason: str = "Unschedulable") -> Document:
        """Wait until the pod's condition PodScheduled is false; gives the condition."""

        def look() -> Document | None:
            for condition in self.api.get(f"{PODS}/{name}").get("status", {}).get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return dict(condition) if condition["reason"] == reason else None
            return None

        return self.until(look, what=f"{name} to be {reason}")

    def event(self, pod: str, reason: str) -> Document:
        return self.until(lambda: self.events(pod, reason), what=f"an event {reason} about {pod}")[0]

    def gone(self, name: str) -> None:
        def look() -> bool:
            try:
                self.api.get(f"{PODS}/{name}")
            except ApiError as error:
                return error.code == 404
            return False

        self.until(look, what=f"the end of {name}")

    def all_bound(self, count: int) -> list[Document]:
        """Wait until so many pods are there and each has a node."""

        def look() -> list[Document] | None:
            pods = self.pods()
            return pods if len(pods) == count and all(pod["spec"].get("nodeName") for pod in pods) else None

        return self.until(look, what=f"{count} bound pods")

    def clear(self) -> None:
        """End every program, and leave no pod, node or event; no controller does it for us."""
        self._programs.close()
        for group, resource in (("apis/apps", "deployments"), ("apis/apps", "replicasets"), ("api", "pods")):
            self._delete_everywhere(f"/{group}/v1", resource)
        self.api.delete(NODES)
        self.api.delete("/api/v1/namespaces/default/events")
        self.api.delete(LEASES)

    def _delete_everywhere(self, group: str, resource: str) -> None:
        """In every namespace: what a test left in one of its own would take room from the next test."""
        found = self.api.items(f"{group}/{resource}")
        for each in found:
            if each["metadata"].get("finalizers"):
                path = f"{group}/namespaces/{each['metadata']['namespace']}/{resource}/{each['metadata']['name']}"
                self.api.merge(path, {"metadata": {"finalizers": None}})
        for namespace in {each["metadata"]["namespace"] for each in found}:
            self.api.delete(f"{group}/namespaces/{namespace}/{resource}")

    def wipe(self) -> None:
        """Leave nothing behind."""
        self.clear()
        for each in self.api.items(PRIORITIES):
            if not each["metadata"]["name"].startswith("system-"):
                self.api.delete(f"{PRIORITIES}/{each['metadata']['name']}")

    def wipe_groups(self) -> None:
        """Where pod groups are served: leave none of them, nothing they are created from, and nothing else."""
        self.wipe()
        for group, resource in (
            ("batch/v1", "jobs"),
            ("scheduling.k8s.io/v1alpha2", "podgroups"),
            ("scheduling.k8s.io/v1alpha2", "workloads"),
        ):
            self._delete_everywhere(f"/apis/{group}", resource)
