"""What `mooring manifests` writes, applied to the real API server, and its scheduler run as the pod would run."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import yaml
from tests.cli.programs import Program
from tests.deploy.build_context import copy_context
from tests.ports import free_ports
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.containers import Container, Document
from tests.real_apiserver.control_plane import ApiError
from tests.real_kubectl.conftest import TIMEOUT_SECONDS

from mooring.deploy.manifests import PORT

REPOSITORY = Path(__file__).parents[2]
BUILD_SECONDS = 900
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def built_root(folder: Path) -> Path:
    """What the image holds: made by the script that the Dockerfile runs, of the files that it copies."""
    source = copy_context(folder.with_name("source"))
    done = subprocess.run(
        [str(source / "scripts" / "build-root"), str(folder)],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        reason = f"scripts/build-root ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        pytest.fail(reason, pytrace=False)
    return folder


def manifests(*arguments: str, home: Path) -> str:
    """What the command prints."""
    with Program("manifests", *arguments, home=home, cwd=REPOSITORY) as program:
        assert program.ended() == 0, program.written()
        return "\n".join(program.out) + "\n"


def documents_in(text: str) -> list[Document]:
    return [document for document in yaml.safe_load_all(text) if document]


def the(kind: str, documents: Sequence[Document]) -> Document:
    (found,) = [document for document in documents if document["kind"] == kind]
    return found


class Deployment:
    """Manifests in a cluster."""

    def __init__(self, cluster: Cluster, text: str, root: Path) -> None:
        self._cluster, self._text, self._root = cluster, text, root
        self.documents = documents_in(text)
        self.deployment = the("Deployment", self.documents)
        self.name: str = self.deployment["metadata"]["name"]
        self.namespace: str = self.deployment["metadata"]["namespace"]
        self.user = f"system:serviceaccount:{self.namespace}:{self.name}"
        self._running = contextlib.ExitStack()

    def __enter__(self) -> Deployment:
        self.applied = kubectl(self._cluster, "apply", "-f", "-", input=self._text)
        self._cluster.until(self._has_its_rights, what=f"the rights of {self.user}")
        return self

    def _has_its_rights(self) -> bool:
        """Whether the rights granted here are in effect: the API server observes them by a watch."""
        bound = {
            document["roleRef"]["name"]
            for document in self.documents
            if document["kind"] in ("RoleBinding", "ClusterRoleBinding")
            and any(subject["name"] == self.name for subject in document["subjects"])
        }
        roles = [document for document in self.documents if document["kind"] in ("Role", "ClusterRole")]
        return all(self._may(role) for role in roles if role["metadata"]["name"] in bound)

    def _may(self, role: Document) -> bool:
        rule = role["rules"][-1]
        resource, _, subresource = rule["resources"][-1].partition("/")
        attributes = {
            "namespace": role["metadata"].get("namespace", ""),
            "group": rule["apiGroups"][-1],
            "resource": resource,
            "subresource": subresource,
            "name": (rule.get("resourceNames") or [""])[-1],
            "verb": rule["verbs"][-1],
        }
        review = {"spec": {"user": self.user, "resourceAttributes": attributes}}
        allowed: bool = self._cluster.api.create(REVIEWS, review)["status"]["allowed"]
        return allowed

    def __exit__(self, *_: object) -> None:
        self._running.close()
        kubectl(self._cluster, "delete", "--wait=false", "--ignore-not-found", "-f", "-", input=self._text)
        for document in self.documents:
            if document["kind"] == "Namespace":
                end_namespace(self._cluster, document["metadata"]["name"])

    def start(self, *more: str, config_maps: Mapping[str, Mapping[str, str]] | None = None) -> Program:
        """The pod's container. `more`: flags; `config_maps`: those that the manifests do not bring."""
        folder = new_folder(self._cluster, self.name)
        spec: Document = self.deployment["spec"]["template"]["spec"]
        assert spec["serviceAccountName"] == self.name
        self.container = Container(
            spec,
            root=self._root,
            folder=folder,
            config_maps={
                each["metadata"]["name"]: each["data"] for each in self.documents if each["kind"] == "ConfigMap"
            }
            | dict(config_maps or {}),
            server=("127.0.0.1", self._cluster.control_plane.port),
            token=self.token(),
            ca_pem=self._cluster.control_plane.ca_pem,
            namespace=self.namespace,
        )
        return self._running.enter_context(self.container.start(*more))

    def token(self) -> str:
        path = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/{self.name}/token"
        created: Document = self._cluster.api.create(path, {"spec": {"expirationSeconds": 3600}})
        return str(created["status"]["token"])


def new_folder(cluster: Cluster, name: str) -> Path:
    """One that every user can enter, as a container's root is."""
    cluster.home.chmod(0o755)
    folder = cluster.home / f"{name}-{len(os.listdir(cluster.home))}"
    folder.mkdir()
    return folder


def own_port() -> list[str]:
    """Nothing, unless the port that containers listen on is in use on this machine: then another one."""
    with contextlib.suppress(OSError), socket.create_server(("0.0.0.0", PORT)):
        return []
    return [f"--secure-port={free_ports(1)[0]}"]


def kubectl(cluster: Cluster, *arguments: str, input: str = "") -> str:
    """kubectl without a namespace of its own: the objects name theirs."""
    command = [word for word in cluster.kubectl.command(*arguments) if not word.startswith("--namespace=")]
    done = subprocess.run(
        command,
        input=input,
        env=cluster.kubectl.environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"kubectl {' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def end_namespace(cluster: Cluster, name: str) -> None:
    """What a namespace controller does once it is empty; there is none here."""
    path = f"/api/v1/namespaces/{name}"
    with contextlib.suppress(ApiError):
        namespace = cluster.api.get(path)
        namespace["spec"]["finalizers"] = []
        cluster.api.request("PUT", f"{path}/finalize", namespace)
