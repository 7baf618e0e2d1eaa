"""What the embedded cluster starts with."""

from __future__ import annotations

from pathlib import Path

from mooring.cli.cluster import initial_objects
from mooring.simulated.loading import with_default_storage

CLASS = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/disk\n"


def storage_classes(nodes: int | None, cluster_file: Path | None = None) -> list[str]:
    initial = with_default_storage(initial_objects(nodes, str(cluster_file) if cluster_file else None))
    return [each["metadata"]["name"] for each in initial.objects if each["kind"] == "StorageClass"]


def test_a_cluster_has_a_default_storage_class():
    assert storage_classes(1) == ["standard"]


def test_a_cluster_file_that_brings_storage_classes_has_its_own_alone(tmp_path: Path):
    (tmp_path / "cluster.yaml").write_text(CLASS, encoding="utf-8")
    assert storage_classes(None, tmp_path / "cluster.yaml") == ["fast"]


def test_a_cluster_that_is_restored_has_the_classes_it_had(tmp_path: Path):
    restored = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it, namespace: default, uid: abc}\n"
    (tmp_path / "cluster.yaml").write_text(restored, encoding="utf-8")
    assert storage_classes(None, tmp_path / "cluster.yaml") == []


def test_nodes_on_another_server_bring_no_storage_class():
    assert [each["kind"] for each in initial_objects(1, None).objects] == []
