"""What is replaced, what stays, and that the two agree throughout a snapshot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.simulated.cluster_file import parse_cluster
from mooring.snapshots.anonymizing import Anonymizer
from mooring.snapshots.kinds import fields_of
from mooring.snapshots.pruning import Pruning

Document = dict[str, Any]
RICH = (Path(__file__).parent / "rich.yaml").read_text(encoding="utf-8")


def anonymized(*documents: Document, keep_labels: tuple[str, ...] = ()) -> list[Any]:
    anonymizer = Anonymizer(keep_labels)
    for document in documents:
        anonymizer.collect(document)
    anonymizer.number()
    return [anonymizer.replaced(document) for document in documents]


def an_object(kind: str, name: str, version: str = "v1", **parts: Any) -> Document:
    metadata = {"name": name, **parts.pop("metadata", {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **parts}


def a_node(name: str, **parts: Any) -> Document:
    return an_object("Node", name, **parts)


def a_pod(name: str = "web", **spec: Any) -> Document:
    return an_object("Pod", name, metadata={"namespace": "shop"}, spec=spec)


def test_names_keep_their_order():
    names = ["b-node", "a-node", "a", "c10", "c9"]
    replaced = [each["metadata"]["name"] for each in anonymized(*map(a_node, names))]
    assert sorted(replaced) == [new for _, new in sorted(zip(names, replaced, strict=True))]
    assert all(name.endswith("-node") for name in replaced)
    assert not set(names) & set(replaced)


def test_the_same_name_is_replaced_alike_everywhere():
    hostname = {"kubernetes.io/hostname": "alpha"}
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["alpha"]}
    by_name = {"key": "metadata.name", "operator": "In", "values": ["alpha"]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [requirement], "matchFields": [by_name]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    node, pod, csi, claim = anonymized(
        a_node("alpha", metadata={"labels": hostname}),
        a_pod(nodeName="alpha", affinity=affinity, nodeSelector=hostname),
        an_object("CSINode", "alpha", "storage.k8s.io/v1"),
        an_object(
            "PersistentVolumeClaim",
            "data",
            metadata={"namespace": "shop", "annotations": {"volume.kubernetes.io/selected-node": "alpha"}},
        ),
    )
    new = node["metadata"]["name"]
    assert node["metadata"]["labels"] == {"kubernetes.io/hostname": new}
    assert pod["spec"]["nodeName"] == csi["metadata"]["name"] == new
    assert pod["spec"]["nodeSelector"] == {"kubernetes.io/hostname": new}
    assert json.dumps(pod).count(new) == 4
    assert claim["metadata"]["annotations"] == {"volume.kubernetes.io/selected-node": new}


def labels(given: dict[str, str], **options: Any) -> dict[str, str]:
    [node] = anonymized(a_node("n", metadata={"labels": given}), **options)
    found: dict[str, str] = node["metadata"]["labels"]
    return found


KEPT_LABELS = {
    "the operating system": {"kubernetes.io/os": "linux"},
    "the architecture": {"kubernetes.io/arch": "arm64"},
    "an empty value": {"node-role.kubernetes.io/control-plane": ""},
    "an ordinal": {"apps.kubernetes.io/pod-index": "3"},
}


@pytest.mark.parametrize("kept", KEPT_LABELS.values(), ids=KEPT_LABELS.keys())
def test_labels_that_stay(kept: dict[str, str]):
    assert labels(kept) == kept


def test_a_well_known_key_stays_and_its_value_does_not():
    assert labels({"topology.kubernetes.io/zone": "zurich"}) == {"topology.kubernetes.io/zone": "x2-zone"}


def test_other_keys_are_replaced():
    assert labels({"acme.example/team": "payments"}) == {"x1-key": "x3-value"}


def test_a_label_stays_that_a_configuration_names():
    kept = {"acme.example/team": "payments"}
    assert labels(kept, keep_labels=("acme.example/team",)) == kept


def affinity_to(**requirement: Any) -> Document:
    term = {"matchExpressions": [requirement]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


def test_numbers_stay_where_they_are_compared():
    node, _ = anonymized(
        a_node("n", metadata={"labels": {"cores": "16", "rack": "16"}}),
        a_pod(affinity=affinity_to(key="cores", operator="Gt", values=["8"])),
    )
    compared, other = node["metadata"]["labels"].values()
    assert compared == "16"
    assert other != "16"


def test_an_invalid_value_stays_invalid():
    [pod] = anonymized(a_pod(affinity=affinity_to(key="tier", operator="NotIn", values=["not valid"])))
    [requirement] = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ][0]["matchExpressions"]
    assert requirement["values"][0].endswith("!")


def test_taints_and_tolerations_agree():
    taint = {"key": "team", "value": "payments", "effect": "NoSchedule"}
    node, pod = anonymized(
        a_node("n", spec={"taints": [taint, {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}),
        a_pod(tolerations=[taint | {"operator": "Equal"}, {"operator": "Exists"}]),
    )
    own, known = node["spec"]["taints"]
    assert pod["spec"]["tolerations"] == [own | {"operator": "Equal"}, {"operator": "Exists"}]
    assert "payments" not in own.values()
    assert known == {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def test_an_image_without_a_tag_is_the_latest():
    node, pod = anonymized(
        a_node("n", status={"images": [{"names": ["nginx:latest", "nginx@sha256:1", "nginx"], "sizeBytes": 1}]}),
        a_pod(containers=[{"name": "a", "image": "nginx"}, {"name": "b", "image": "localhost:5000/nginx"}]),
    )
    tagged, digest, bare = node["status"]["images"][0]["names"]
    first, second = (container["image"] for container in pod["spec"]["containers"])
    assert first == tagged
    assert len({first, second, digest, bare}) == 4
    assert ":" in second
    assert ":" not in bare, "a pod's image is never the same as a name without a tag"


def test_names_that_every_cluster_has_stay():
    [namespace] = anonymized(an_object("Namespace", "kube-system"))
    assert namespace["metadata"]["name"] == "kube-system"
    [pod] = anonymized(a_pod(priorityClassName="system-node-critical", schedulerName="gpu-scheduler"))
    assert pod["spec"] == {"priorityClassName": "system-node-critical", "schedulerName": "gpu-scheduler"}


def test_resources_stay():
    resources = {"requests": {"cpu": "1", "nvidia.com/gpu": "2"}}
    [pod] = anonymized(a_pod(containers=[{"name": "app", "image": "", "resources": resources}]))
    assert pod["spec"]["containers"][0]["resources"] == resources


OWNED = {"namespace": "shop", "ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}]}


def test_pods_and_claims_of_a_stateful_set_are_named_by_it():
    owner = an_object(
        "StatefulSet",
        "db",
        "apps/v1",
        metadata={"namespace": "shop"},
        spec={"volumeClaimTemplates": [{"metadata": {"name": "data"}}]},
        status={"updateRevision": "db-5f4d"},
    )
    pod = an_object("Pod", "db-10", metadata=OWNED | {"labels": {"controller-revision-hash": "db-5f4d"}})
    claim = an_object("PersistentVolumeClaim", "data-db-10", metadata={"namespace": "shop"})
    owner, pod, claim = anonymized(owner, pod, claim)
    name = owner["metadata"]["name"]
    template = owner["spec"]["volumeClaimTemplates"][0]["metadata"]["name"]
    assert pod["metadata"]["name"] == f"{name}-10"
    assert claim["metadata"]["name"] == f"{template}-{name}-10"
    assert owner["status"]["updateRevision"].startswith(f"{name}-x")
    assert pod["metadata"]["labels"] == {"controller-revision-hash": owner["status"]["updateRevision"]}
    assert pod["metadata"]["ownerReferences"][0]["name"] == name


def test_the_claim_of_an_ephemeral_volume_is_named_by_pod_and_volume():
    pod, claim = anonymized(
        a_pod("web", volumes=[{"name": "scratch", "ephemeral": {}}]),
        an_object("PersistentVolumeClaim", "web-scratch", metadata={"namespace": "shop"}),
    )
    assert claim["metadata"]["name"] == f"{pod['metadata']['name']}-{pod['spec']['volumes'][0]['name']}"


def test_handles_of_migrated_volumes_agree():
    [pod, volume] = anonymized(
        a_pod(volumes=[{"name": "disk", "awsElasticBlockStore": {"volumeID": "aws://zone/vol-1"}}]),
        an_object("PersistentVolume", "pv", spec={"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol-1"}}),
    )
    handle = volume["spec"]["csi"]["volumeHandle"]
    assert volume["spec"]["csi"]["driver"] == "ebs.csi.aws.com"
    assert handle.startswith("vol-x")
    assert pod["spec"]["volumes"][0]["awsElasticBlockStore"]["volumeID"].endswith(f"/{handle}")


def test_zones_of_a_region_stay_in_one_region():
    zones = {"topology.kubernetes.io/zone": "europe-west1-b__europe-west1-c"}
    [volume] = anonymized(an_object("PersistentVolume", "pv", metadata={"labels": zones}))
    one, other = volume["metadata"]["labels"]["topology.kubernetes.io/zone"].split("__")
    assert one.count("-") == other.count("-") == 2
    assert one.rpartition("-")[0] == other.rpartition("-")[0]
    assert one != other


def a_slice(**attributes: Any) -> Document:
    return an_object("ResourceSlice", "s", "resource.k8s.io/v1", spec={"devices": [{"attributes": attributes}]})


def a_class(expression: str) -> Document:
    selectors = [{"cel": {"expression": expression}}]
    return an_object("DeviceClass", "gpu", "resource.k8s.io/v1", spec={"selectors": selectors})


def test_device_attributes_stay_where_an_expression_reads_them():
    attributes = {"model": {"string": "A100"}, "example.com/uuid": {"string": "GPU-7"}, "cores": {"int": 3}}
    found, _ = anonymized(a_slice(**attributes), a_class('device.attributes["example.com"].model == "A100"'))
    [device] = found["spec"]["devices"]
    assert device["attributes"]["model"] == {"string": "A100"}
    assert device["attributes"]["cores"] == {"int": 3}
    assert device["attributes"]["example.com/uuid"]["string"] != "GPU-7"


def test_all_device_attributes_stay_where_an_expression_may_read_any():
    found, _ = anonymized(a_slice(uuid={"string": "GPU-7"}), a_class("device.attributes.exists(name, name != '')"))
    assert found["spec"]["devices"][0]["attributes"] == {"uuid": {"string": "GPU-7"}}


def test_uids_are_replaced_alike():
    uid = "8e62ae51-e1ae-43a2-9f43-104353a49219"
    job = an_object(
        "Job", "j", "batch/v1", metadata={"uid": uid, "labels": {"batch.kubernetes.io/controller-uid": uid}}
    )
    [replaced] = anonymized(job)
    assert replaced["metadata"]["uid"] != uid
    assert replaced["metadata"]["labels"] == {"batch.kubernetes.io/controller-uid": replaced["metadata"]["uid"]}


def test_kinds_of_owners_that_are_not_saved_are_replaced():
    owner = {"apiVersion": "acme.example/v1", "kind": "AcmeDatabase", "name": "orders", "uid": "u"}
    [pod] = anonymized(an_object("Pod", "p", metadata={"ownerReferences": [owner]}))
    assert not {"acme.example/v1", "AcmeDatabase", "orders"} & set(pod["metadata"]["ownerReferences"][0].values())


DEFINITION = an_object(
    "CustomResourceDefinition",
    "quotas.example.com",
    "apiextensions.k8s.io/v1",
    spec={
        "group": "example.com",
        "versions": [
            {
                "schema": {
                    "openAPIV3Schema": {
                        "properties": {
                            "spec": {
                                "properties": {
                                    "mode": {"type": "string", "enum": ["Hard", "Soft"]},
                                    "node": {"type": "string"},
                                    "limits": {"additionalProperties": {}},
                                    "matchLabels": {"additionalProperties": {"type": "string"}},
                                }
                            }
                        }
                    }
                }
            }
        ],
    },
)


def test_custom_objects_keep_what_their_definition_prescribes():
    spec = {"mode": "Hard", "node": "alpha", "limits": {"cpu": "10", "acme": 3}, "matchLabels": {"team": "payments"}}
    quota = an_object("Quota", "gold", "example.com/v1", spec=spec)
    definition, node, replaced = anonymized(DEFINITION, a_node("alpha"), quota)
    assert definition == DEFINITION
    assert replaced["spec"]["mode"] == "Hard"
    assert replaced["spec"]["node"] == node["metadata"]["name"]
    assert replaced["spec"]["limits"] == {"cpu": "10", "acme": 3}
    assert not {"team", "payments"} & {*replaced["spec"]["matchLabels"], *replaced["spec"]["matchLabels"].values()}
    assert replaced["metadata"]["name"] != "gold"


def test_no_name_of_a_rich_cluster_is_left_and_it_can_be_restored():
    server, pruning = EmbeddedApiServer(features=["GenericWorkload"]), Pruning()
    documents = parse_cluster(RICH, "rich.yaml", now=1e9).in_order()
    assert server.load(documents) == []
    pruned = [pruning.prune(each, fields_of(each["apiVersion"], each["kind"])) for each in documents]
    for each in pruned:
        each["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    replaced = anonymized(*pruned)
    text = json.dumps(replaced)
    names = {"node-1", "shop", "web", "agent", "once", "nginx", "disk.example.com", "pv-1", "high", "kata", "vol-1"}
    assert [name for name in sorted(names) if f'"{name}' in text] == []
    restored = EmbeddedApiServer(features=["GenericWorkload"]).restore(replaced)
    assert (restored.problems, restored.unserved, restored.dropped) == ([], {}, {})
