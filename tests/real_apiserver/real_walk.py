"""The walk of an example's README on a real API server, as far as it differs there.

Where the README starts a cluster of ours, simulated nodes and controllers join the real one, and a scheduler beside
them if the README's cluster has one. Schedulers get no more rights than the cluster gives them: those of the service
account that a manifest of the walk brought along, or kube-scheduler's.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.cli.programs import PATIENCE_SECONDS, private_home
from tests.real_apiserver.control_plane import ADMIN, LOOK_AGAIN_SECONDS, SCHEDULER, ControlPlane
from tests.real_kubectl.walkthrough import ROOT, Step, Walk, steps

Document = dict[str, Any]

KUBECONFIG = "mooring.kubeconfig"
"""As the READMEs name it: the reader's own, with all rights."""

OF_NODES = ("--nodes", "--cluster")


class RealWalk(Walk):
    """A reader at work on a real cluster."""

    def __init__(self, home: Path, running: contextlib.ExitStack, control_plane: ControlPlane) -> None:
        super().__init__(home, running)
        self._control_plane = control_plane
        self._scheduler = control_plane.kubeconfig(SCHEDULER)
        control_plane.write_kubeconfig(ADMIN, home / KUBECONFIG, port=control_plane.port)

    def _stay(self, step: Step) -> None:
        program, verb, *arguments = shlex.split(step.command)
        if (program, verb) == ("mooring", "up"):
            nodes, others = _divided(arguments)
            self._nodes(nodes, [])
            flags = shlex.join(
                [*others, "--leader-elect=false", f"--kubeconfig={self._control_plane.kubeconfig(SCHEDULER)}"]
            )
            self._start_in("cluster", Step(f"mooring run {flags}", step.shows)).ready()
        elif (program, verb) == ("mooring", "cluster"):
            self._nodes(arguments, step.shows)
        elif verb.endswith("traffic.py"):
            super()._stay(step)
        else:
            given = [each.replace(KUBECONFIG, str(self._scheduler)) for each in arguments]
            if given == arguments:
                given.append(f"--kubeconfig={self._scheduler}")
            super()._stay(Step(shlex.join([program, verb, *given]), step.shows))

    def _nodes(self, arguments: list[str], shows: list[str]) -> None:
        command = shlex.join(["mooring", "nodes", f"--kubeconfig={KUBECONFIG}", "--controllers", *arguments])
        self._start_in("nodes", Step(command, shows)).ready()

    def _run(self, step: Step) -> None:
        if step.command.startswith("kubectl explain"):
            self._run_in_time(step)  # the server describes a new kind some moments after it serves it
        else:
            super()._run(step)
        match shlex.split(step.command)[:4]:
            case ["kubectl", "apply", "-f", path] if (self.home / path).exists():
                self._take_account(self.home / path)

    def _run_in_time(self, step: Step) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                super()._run(step)
                return
            except AssertionError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(LOOK_AGAIN_SECONDS)

    def _take_account(self, manifest: Path) -> None:
        """If the manifest deploys `mooring`, schedulers of the walk run under its account from now on."""
        documents: list[Document] = list(yaml.safe_load_all(manifest.read_text(encoding="utf-8")))
        for document in documents:
            if document["kind"] == "Deployment":
                spec = document["spec"]["template"]["spec"]
                [container] = spec["containers"]
                if container.get("command", [])[:1] == ["mooring"]:
                    namespace, account = document["metadata"]["namespace"], spec["serviceAccountName"]
                    self._scheduler = account_kubeconfig(self._control_plane, namespace, account, self.home / "account")


def account_kubeconfig(control_plane: ControlPlane, namespace: str, account: str, path: Path) -> Path:
    """A kubeconfig with a token of the service account."""
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    request: Document = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    token = control_plane.api.create(f"{accounts}/{account}/token", request)["status"]["token"]
    control_plane.write_kubeconfig(SCHEDULER, path, port=control_plane.port)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["users"][0]["user"]["token"] = token
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """What `mooring nodes` takes, and what `mooring run` takes."""
    nodes, others = [], []
    words = iter(arguments)
    for word in words:
        if word in OF_NODES:
            nodes += [word, next(words)]
        elif word.startswith(tuple(f"{each}=" for each in OF_NODES)):
            nodes.append(word)
        else:
            others.append(word)
    return nodes, others


@contextlib.contextmanager
def walked_for_real(example: str, control_plane: ControlPlane) -> Iterator[RealWalk]:
    """Walk through the example's README on this control plane, and leave its end state open for more checks."""
    folder = ROOT / "examples" / example
    with private_home() as home, contextlib.ExitStack() as running:
        (home / "examples").symlink_to(ROOT / "examples")
        for path in folder.glob("*.yaml"):  # for READMEs whose reader stands in their folder
            (home / path.name).write_bytes(path.read_bytes())
        walk = RealWalk(home, running, control_plane)
        for step in steps(folder / "README.md"):
            walk.take(step)
        yield walk
        walk.end()
