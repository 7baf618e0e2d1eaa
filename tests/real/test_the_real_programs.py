"""The programs that the other tests here rely on are the ones we say they are."""

from pathlib import Path

from tests.real.conftest import Kubectl, kubernetes_version


def test_kubectl_is_the_version_we_build(kubectl: type[Kubectl], tmp_path: Path):
    client = kubectl(tmp_path / "no.kubeconfig").json("version", "--client")
    assert client["clientVersion"]["gitVersion"] == kubernetes_version()


def test_kubectl_knows_only_the_cluster_it_was_given(kubectl: type[Kubectl], tmp_path: Path):
    empty = tmp_path / "empty.kubeconfig"
    empty.write_text("apiVersion: v1\nkind: Config\n", encoding="utf-8")
    assert kubectl(empty).json("config", "view")["clusters"] is None
