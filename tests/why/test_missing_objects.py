"""Pods that wait for a claim, a gate or a device: what is missing is named, and what to create or remove."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from tests.plugins.default.dynamic_resources.builders import a_claim as a_device_claim
from tests.plugins.default.dynamic_resources.builders import a_class, a_slice, allocated, devices, wants
from tests.why.clusters import recomputing

from mooring.framework import Pod
from mooring.objects.core import PodResourceClaim
from mooring.objects.meta import KubeObject
from mooring.testing import a_node_object, a_pod
from mooring.testing.storage import a_claim, a_storage_class, claim_volume
from mooring.why import recomputed
from mooring.why.changes import with_spec

NODES = [a_node_object("one"), a_node_object("two")]


class Expected(NamedTuple):
    missing: list[str]
    changes: list[str]


def claiming(pod: Pod, *claims: str, template: str | None = None) -> Pod:
    entries = [PodResourceClaim(name=claim, resource_claim_name=claim) for claim in claims]
    entries += [PodResourceClaim(name="made", resource_claim_template_name=template)] if template else []
    return with_spec(pod, resource_claims=entries)


GPUS = [a_class("gpu"), a_slice(*devices("gpu-0"), node="one")]
RUNS = a_pod("pod", node="one", uid="uid-a")
IN_USE = a_device_claim("of-a", wants(), allocation=allocated("gpu-0", pool="one", on="one"), reserved_for=[RUNS.uid])
WAITS = claiming(a_pod("b"), "of-b")

CASES: dict[str, tuple[Sequence[KubeObject], list[Pod], Pod, Expected]] = {
    "a claim that does not exist": (
        [a_storage_class("wait"), a_claim("nosuch-1"), a_claim("other")],
        [],
        a_pod(volumes=[claim_volume("nosuch")]),
        Expected(
            ["lacks the PersistentVolumeClaim default/nosuch, which does not exist (similar: nosuch-1)"],
            [
                "use the PersistentVolumeClaim nosuch-1 in place of nosuch",
                "create the PersistentVolumeClaim nosuch, of the size that it needs",
            ],
        ),
    ),
    "a claim where no storage class makes volumes": (
        [],
        [],
        a_pod(volumes=[claim_volume("nosuch")]),
        Expected(
            ["lacks the PersistentVolumeClaim default/nosuch, which does not exist"],
            ["create the PersistentVolumeClaim nosuch, of the size that it needs, and a volume for it"],
        ),
    ),
    "a storage class that does not exist": (
        [a_storage_class("fast"), a_claim("data", storage_class="fats")],
        [],
        a_pod(volumes=[claim_volume("data")]),
        Expected(
            [
                "needs the PersistentVolumeClaim default/data, which is not bound: its StorageClass fats does not exist"
                " (similar: fast)"
            ],
            [
                "delete the PersistentVolumeClaim default/data, which has no data yet, and create it again with "
                "storageClassName fast"
            ],
        ),
    ),
    "a claim that is bound before a pod comes, and is not yet": (
        [a_storage_class("now", mode="Immediate"), a_claim("data", storage_class="now")],
        [],
        a_pod(volumes=[claim_volume("data")]),
        Expected(
            [
                "needs the PersistentVolumeClaim default/data, which is not bound: its StorageClass now binds volumes "
                "without waiting for a pod, and has not yet"
            ],
            [],
        ),
    ),
    "a scheduling gate": (
        [],
        [],
        a_pod(gates=["example.com/wait"]),
        Expected(
            ["has the scheduling gate example.com/wait"],
            ["remove the scheduling gate example.com/wait, unless a controller does once it may run"],
        ),
    ),
    "a ResourceClaim that does not exist": (
        [*GPUS, a_device_claim("of-bb", wants())],
        [],
        WAITS,
        Expected(
            ["lacks the ResourceClaim default/of-b, which does not exist (similar: of-bb)"],
            ["use the ResourceClaim of-bb in place of of-b"],
        ),
    ),
    "a ResourceClaim that is not created from its template": (
        GPUS,
        [],
        claiming(a_pod("b"), template="gpus"),
        Expected(
            [
                "waits until a ResourceClaim is created from the ResourceClaimTemplate default/gpus; see that it "
                "exists: kubectl get resourceclaimtemplates gpus -n default"
            ],
            [],
        ),
    ),
    "a device that another pod has": (
        [*GPUS, IN_USE, a_device_claim("of-b", wants())],
        [RUNS],
        WAITS,
        Expected(
            [
                "has 1 device for request r of ResourceClaim default/of-b, which needs 1: "
                "ResourceClaim default/of-a of pod default/pod holds gpu-0"
            ],
            ["delete default/pod"],
        ),
    ),
    "no device that the request selects": (
        [*GPUS, a_device_claim("of-b", wants("r", 1, 'device.driver == "other.example.com"'))],
        [],
        WAITS,
        Expected(["has no device of class gpu that request r of ResourceClaim default/of-b selects"], []),
    ),
}


def explained(objects: Sequence[KubeObject], pods: list[Pod], pod: Pod) -> dict[str, Any]:
    with recomputing(NODES, [*pods, pod], objects=objects) as recomputation:
        before = {each.key for each in objects}
        found = recomputed(recomputation, pod)
        again = recomputed(recomputation, pod)
        assert again == found, "what was tried is taken back"
        assert {each.key for kind in {type(each) for each in objects} for each in recomputation.known(kind)} == before
    return found


@pytest.mark.parametrize(("objects", "pods", "pod", "expected"), CASES.values(), ids=CASES.keys())
def test_what_is_missing_and_what_would_help(
    objects: Sequence[KubeObject], pods: list[Pod], pod: Pod, expected: Expected
):
    found = explained(objects, pods, pod)
    nearest = found["nearest"]
    missing = list(dict.fromkeys(sentence for miss in nearest for sentence in miss["missing"]))
    assert Expected(missing[:1], [change["change"] for change in nearest[0]["changes"]]) == expected


def test_a_reason_that_several_plugins_give_stands_once():
    objects, pods, pod, expected = CASES["a claim that does not exist"]
    [miss] = explained(objects, pods, pod)["nearest"]
    assert miss["missing"] == expected.missing
    assert miss["node"] is None, "no node is nearer than another"


def test_a_new_claim_has_a_manifest_to_create():
    objects, pods, pod, _ = CASES["a claim that does not exist"]
    create = explained(objects, pods, pod)["nearest"][0]["changes"][1]["create"]
    assert (create["kind"], create["metadata"]) == ("PersistentVolumeClaim", {"name": "nosuch", "namespace": "default"})


def test_how_a_gate_is_removed():
    [miss] = explained([], [], a_pod("web", gates=["example.com/wait"]))["nearest"]
    assert miss["changes"][0]["command"] == (
        "kubectl patch pod web -n default --type=json -p "
        """'[{"op":"remove","path":"/spec/schedulingGates"}]'"""
    )


def test_a_gated_pod_that_fits_no_node_has_both():
    found = explained([], [], a_pod(gates=["later"], cpu="64"))
    assert [miss["plugin"] for miss in found["nearest"]] == ["SchedulingGates", "NodeResourcesFit"]
    assert found["nearest"][0]["missing"][-1] == "would wait for a node without that, too"
    assert found["nearest"][1]["changes"][0]["change"] == "request 4 cpu instead of 64"
