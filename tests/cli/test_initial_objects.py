"""What the embedded cluster starts with."""

from __future__ import annotations

from pathlib import Path

from mooring.cli.cluster import initial_objects

CLASS = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fast}\nprovisioner: example.com/disk\n"


def storage_classes(nodes: int | None, cluster_file: Path | None = None) -> list[str]:
    initial = initial_objects(nodes, str(cluster_file) if cluster_file else None)
    return [each["metadata"]["name"] for each in initial.objects if each["kind"] == "StorageClass"]


def test_a_cluster_has_a_default_storage_class():
    assert storage_classes(1) == ["standard"]


def test_a_cluster_file_that_brings_storage_classes_has_its_own_alone(tmp_path: Path):
    (tmp_path / "cluster.yaml").write_text(CLASS, encoding="utf-8")
    assert storage_classes(None, tmp_path / "cluster.yaml") == ["fast"]
