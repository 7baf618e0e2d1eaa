"""The tables of kept fields: they hold all that scheduling reads."""

from __future__ import annotations

import types
import typing
from typing import Any

import msgspec
import pytest

from mooring.framework.registry import all_object_types
from mooring.objects import CustomResource, KubeObject, Node, Pod
from mooring.objects.wire import Wire
from mooring.plugins.catalogue import catalogue
from mooring.snapshots.anonymizing import Anonymizer
from mooring.snapshots.fields import ANNOTATION_VALUES, Entries, Leaf
from mooring.snapshots.kinds import DEFINITION, SAVED, custom
from mooring.snapshots.pruning import Pruning

READ = [Pod, Node, *(kind for kind in all_object_types(catalogue()) if not issubclass(kind, CustomResource))]
NOT_KEPT = {
    "metadata.resourceVersion": "a restored cluster has versions of its own",
    "message": "often has names in it, and no plugin reads it",
    "opaque": "for drivers alone, and may hold credentials",
    "config": "for drivers alone, and may hold credentials",
    "claimRef.resourceVersion": "a restored cluster has versions of its own",
}


def structs_in(annotation: Any) -> list[type[Any]]:
    """The structs inside a type: `list[Taint] | None` has one."""
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        return [annotation]
    return [found for part in typing.get_args(annotation) for found in structs_in(part)]


def missing(struct: type[Any], table: Any, path: str) -> list[str]:
    """The fields that our class has and the table lacks."""
    if isinstance(table, list):
        table = table[0]
    if isinstance(table, Leaf | Entries):
        return []
    hints = typing.get_type_hints(struct, include_extras=False)
    found = []
    for field in msgspec.structs.fields(struct):
        name = field.encode_name
        where = f"{path}.{name}".removeprefix(".")
        if any(where == each or where.endswith(f".{each}") for each in NOT_KEPT):
            continue
        if name not in table:
            found.append(where)
            continue
        for inner in structs_in(hints[field.name]):
            found += missing(inner, table[name], where)
    return found


@pytest.mark.parametrize("kind", READ, ids=lambda kind: kind.__name__)
def test_every_field_that_our_classes_read_is_kept(kind: type[KubeObject]):
    saved = {each.key: each for each in SAVED}[kind.KIND.api_version, kind.KIND.kind]
    assert missing(kind, saved.fields, "") == []


def test_the_comparison_would_notice():
    class Another(Wire):
        is_new: int = 0

    assert isinstance(Another | None, types.UnionType)
    assert missing(Another, {}, "spec") == ["spec.isNew"]


def leaves(table: Any) -> list[Leaf]:
    if isinstance(table, Leaf):
        return [table]
    if isinstance(table, Entries):
        return [table.key, *leaves(table.value)]
    parts = table if isinstance(table, list) else table.values()
    return [leaf for part in parts for leaf in leaves(part)]


def test_every_kept_field_can_be_anonymized():
    tables = [saved.fields for saved in (*SAVED, DEFINITION, custom(Pod.KIND))]
    hows = {leaf.how for table in tables for leaf in leaves(table)} | {leaf.how for leaf in ANNOTATION_VALUES.values()}
    assert [how for how in sorted(hows) if not hasattr(Anonymizer, f"_{how}")] == []


def test_no_secrets_and_no_config_maps():
    assert not {"secrets", "configmaps", "serviceaccounts", "events"} & {saved.kind.plural for saved in SAVED}


DROPPED = {
    "environment variables": {"env": [{"name": "A", "value": "s"}], "envFrom": [{"secretRef": {"name": "s"}}]},
    "commands": {"command": ["s"], "args": ["s"]},
    "probes and hooks": {"livenessProbe": {"exec": {"command": ["s"]}}, "lifecycle": {"preStop": {}}},
    "mounts": {"volumeMounts": [{"name": "s", "mountPath": "/s"}]},
    "fields that Kubernetes will have": {"addedLater": "s"},
}


def pruned_pod(**more: Any) -> dict[str, Any]:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {"containers": []}}
    return Pruning().prune(pod | more, SAVED[0].fields)


@pytest.mark.parametrize("extra", DROPPED.values(), ids=DROPPED.keys())
def test_dropped_of_containers(extra: dict[str, Any]):
    container = {"name": "app", "image": "nginx", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container | extra], "initContainers": [container | extra]}
    assert pruned_pod(spec=spec)["spec"] == {"containers": [container], "initContainers": [container]}


def test_dropped_of_pods():
    secret = {"serviceAccountName": "s", "imagePullSecrets": [{"name": "s"}], "hostAliases": [{"ip": "s"}]}
    metadata = {
        "name": "web",
        "managedFields": [{"manager": "s"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "s", "vault/token": "s"},
        "resourceVersion": "7",
        "generateName": "web-",
    }
    status = {"phase": "Running", "message": "s", "podIP": "s", "conditions": [{"type": "Ready", "message": "s"}]}
    assert pruned_pod(metadata=metadata, spec=secret, status=status) == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web"},
        "spec": {},
        "status": {"phase": "Running", "conditions": [{"type": "Ready"}]},
    }


def test_volumes_stay_where_they_matter_to_placement_or_drains():
    kept = [
        {"name": "scratch", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "disk", "awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"name": "files", "image": {"reference": "files:1"}},
    ]
    others = [
        {"name": "s", "secret": {"secretName": "s"}},
        {"name": "s", "csi": {"driver": "s", "nodePublishSecretRef": {"name": "s"}}},
    ]
    assert pruned_pod(spec={"volumes": [*others, *kept]})["spec"] == {"volumes": kept}
    sized = {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}
    assert pruned_pod(spec={"volumes": [sized]})["spec"] == {"volumes": kept[:1]}


def deployment(template: dict[str, Any], kind: str = "Deployment") -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {"template": template}}


def test_templates_that_differ_in_what_is_dropped_still_differ():
    pruning = Pruning()
    fields = {saved.kind.kind: saved.fields for saved in SAVED}

    def mark(value: str, kind: str = "Deployment", **labels: str) -> str:
        container = {"name": "app", "env": [{"name": "A", "value": value}]}
        metadata = {"labels": {"app": "web", **labels}, "creationTimestamp": None}
        template = {"metadata": metadata, "spec": {"containers": [container]}}
        kept = pruning.prune(deployment(template, kind), fields[kind])["spec"]["template"]
        return str(kept["metadata"]["annotations"]["mooring.dev/template"])

    assert mark("one") == mark("one", "ReplicaSet", **{"pod-template-hash": "abc"})
    assert mark("one") != mark("two")
    assert Pruning().prune(deployment({}), fields["Deployment"]) != pruning.prune(
        deployment({}), fields["Deployment"]
    ), "whose key is another in each snapshot"
