"""The programs that the other tests here rely on are the pinned ones."""

import subprocess
from pathlib import Path

import pytest
from tests.real_kubectl.conftest import TIMEOUT_SECONDS, Kubectl, kubernetes_version, real_program


def test_kubectl_is_the_version_we_build(kubectl: type[Kubectl], tmp_path: Path):
    client = kubectl(tmp_path / "no.kubeconfig").json("version", "--client")
    assert client["clientVersion"]["gitVersion"] == kubernetes_version()


def test_kubectl_knows_only_the_cluster_it_was_given(kubectl: type[Kubectl], tmp_path: Path):
    empty = tmp_path / "empty.kubeconfig"
    empty.write_text("apiVersion: v1\nkind: Config\n", encoding="utf-8")
    assert kubectl(empty).json("config", "view")["clusters"] is None


@pytest.mark.parametrize("name", ["kube-apiserver", "kube-scheduler"])
def test_the_servers_are_the_version_we_build(name: str):
    command = [str(real_program(name)), "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=True).stdout
    assert printed == f"Kubernetes {kubernetes_version()}\n"
