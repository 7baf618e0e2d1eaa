"""VolumeBinding: where a pod's volumes are or can be made, claims that cannot be used, and what requeues a pod."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.volume_plugins import SKIPPED, plugin_with, verdict_of
from tests.plugins.verdicts import requeues

from mooring.base.errors import Fault, OperatorMistake
from mooring.framework import UNRESOLVABLE
from mooring.objects.core import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from mooring.objects.migration import ZONE
from mooring.objects.storage import BETA_CLASS, NO_PROVISIONER, VolumeNodeAffinity
from mooring.plugins.default.volume_binding import VolumeBinding
from mooring.plugins.default.volume_binding.plugin import UNBOUND
from mooring.plugins.default.volume_binding.search import BIND_CONFLICT, NO_ROOM, NODE_CONFLICT, VOLUME_GONE
from mooring.testing import a_node, a_node_object, a_plugin, a_pod
from mooring.testing.storage import (
    a_capacity,
    a_claim,
    a_csi_driver,
    a_csi_node,
    a_storage_class,
    a_volume,
    claim_volume,
    ephemeral_volume,
)

POD = a_pod(uid="me", volumes=[claim_volume("data")])
TWO = a_pod(volumes=[claim_volume("data"), claim_volume("more")])
HERE, THERE = {ZONE: ["here"]}, {ZONE: ["there"]}
NODE = a_node(labels={ZONE: "here"})
LOCAL = a_storage_class("local", provisioner=NO_PROVISIONER)


def refused(*reasons: str):
    return UNRESOLVABLE, reasons


BOUND = {
    "a volume without affinity": ([a_claim(volume="pv"), a_volume("pv")], None),
    "a volume that is here": ([a_claim(volume="pv"), a_volume("pv", on=HERE)], None),
    "a volume that is elsewhere": ([a_claim(volume="pv"), a_volume("pv", on=THERE)], refused(NODE_CONFLICT)),
    "a volume that is gone": ([a_claim(volume="pv")], refused(VOLUME_GONE)),
    "a volume in a tree that a driver took over here": (
        [
            a_claim(volume="pv"),
            a_volume("pv", on=HERE, source={"aws_elastic_block_store": {"volumeID": "vol-1"}}),
            a_csi_node(migrated=["kubernetes.io/aws-ebs"]),
        ],
        refused(NODE_CONFLICT),
    ),
    "and one that it did not take over here": (
        [
            a_claim(volume="pv"),
            a_volume("pv", on=HERE, source={"aws_elastic_block_store": {"volumeID": "vol-1"}}),
            a_csi_node(migrated=["kubernetes.io/gce-pd"]),
        ],
        None,
    ),
}


@pytest.mark.parametrize(("objects", "expected"), BOUND.values(), ids=BOUND.keys())
def test_claims_that_are_bound(objects, expected):
    assert verdict_of(plugin_with(VolumeBinding, *objects), POD, NODE) == expected


def test_a_volume_that_its_driver_cannot_know_fails_the_attempt():
    plugin = plugin_with(
        VolumeBinding,
        a_claim(volume="pv"),
        a_volume("pv", source={"azure_disk": {"diskURI": "u", "kind": "Shared"}}),
        a_csi_node(migrated=["kubernetes.io/azure-disk"]),
    )
    with pytest.raises(Fault, match="could not translate pv"):
        verdict_of(plugin, POD, NODE)


def a_waiting_claim(**fields):
    return a_claim(storage_class="local", **fields)


def an_offer(name: str = "pv", **offers):
    return a_volume(name, storage_class="local", **offers)


NONE_FOUND = refused(BIND_CONFLICT)
STATIC = {
    "a free volume": ([a_waiting_claim(), an_offer()], None),
    "none at all": ([a_waiting_claim()], NONE_FOUND),
    "one that is too small": ([a_waiting_claim(size="2Gi"), an_offer()], NONE_FOUND),
    "one that is elsewhere": ([a_waiting_claim(), an_offer(on=THERE)], NONE_FOUND),
    "one here among others": ([a_waiting_claim(), an_offer("a", on=THERE), an_offer("b", on=HERE)], None),
    "one of another class": ([a_waiting_claim(), a_volume(storage_class="other")], NONE_FOUND),
    "one of another mode": ([a_waiting_claim(volume_mode="Block"), an_offer()], NONE_FOUND),
    "no mode is the mode Filesystem": ([a_waiting_claim(volume_mode="Filesystem"), an_offer()], None),
    "one without all the access modes": (
        [a_waiting_claim(modes=["ReadWriteOnce", "ReadOnlyMany"]), an_offer()],
        NONE_FOUND,
    ),
    "one with more access modes": ([a_waiting_claim(), an_offer(modes=["ReadWriteMany", "ReadWriteOnce"])], None),
    "one that the selector leaves out": ([a_waiting_claim(selector={"tier": "fast"}), an_offer()], NONE_FOUND),
    "one that the selector selects": ([a_waiting_claim(selector={"tier": "x"}), an_offer(labels={"tier": "x"})], None),
    "one with another attributes class": ([a_waiting_claim(attributes_class="gold"), an_offer()], NONE_FOUND),
    "one with the same": ([a_waiting_claim(attributes_class="gold"), an_offer(attributes_class="gold")], None),
    "one that is being deleted": ([a_waiting_claim(), an_offer(deleting=True)], NONE_FOUND),
    "one that is not available yet": ([a_waiting_claim(), an_offer(phase="Pending")], NONE_FOUND),
    "one kept for this claim": ([a_waiting_claim(), an_offer(claim="default/data", phase="Bound")], None),
    "one kept for this claim, which it does not fit otherwise": (
        [a_waiting_claim(modes=["ReadWriteMany"], selector={"a": "b"}), an_offer(claim="default/data")],
        None,
    ),
    "one kept for this claim elsewhere rules the others out": (
        [a_waiting_claim(), an_offer("kept", claim="default/data", on=THERE), an_offer("free")],
        NONE_FOUND,
    ),
    "one kept for an earlier claim of this name": (
        [a_waiting_claim(), an_offer(claim="default/data", claim_uid="x")],
        NONE_FOUND,
    ),
    "one kept for another claim": ([a_waiting_claim(), an_offer(claim="shop/data")], NONE_FOUND),
    "the class by the old annotation": (
        [a_claim(storage_class="x", annotations={BETA_CLASS: "local"}), an_offer()],
        None,
    ),
}


@pytest.mark.parametrize(("objects", "expected"), STATIC.values(), ids=STATIC.keys())
def test_claims_that_wait_for_a_pod_and_get_a_free_volume(objects, expected):
    assert verdict_of(plugin_with(VolumeBinding, LOCAL, *objects), POD, NODE) == expected


def test_a_volumes_affinity_does_not_know_the_names_of_nodes():
    volume = an_offer(on={})
    named = NodeSelectorRequirement(key="metadata.name", operator="In", values=("other",))
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(named,)),))
    force_setattr(volume.spec, "node_affinity", VolumeNodeAffinity(required=selector))
    assert verdict_of(plugin_with(VolumeBinding, LOCAL, a_waiting_claim(), volume), POD, NODE) is None


PAIRS = {
    "two volumes for two claims": (["1Gi", "1Gi"], ["1Gi", "1Gi"], None),
    "one volume is not enough": (["1Gi", "1Gi"], ["1Gi"], NONE_FOUND),
    "the small claim takes the small volume": (["5Gi", "1Gi"], ["1Gi", "5Gi"], None),
    "the smallest that will do leaves the large one": (["1Gi", "5Gi"], ["3Gi", "5Gi"], None),
    "no large one is left": (["5Gi", "5Gi"], ["1Gi", "5Gi"], NONE_FOUND),
}


@pytest.mark.parametrize(("wanted", "offered", "expected"), PAIRS.values(), ids=PAIRS.keys())
def test_two_claims_share_what_there_is(wanted, offered, expected):
    claims = [a_waiting_claim(name=name, size=size) for name, size in zip(("data", "more"), wanted, strict=True)]
    volumes = [an_offer(f"pv-{at}", size=size, on=HERE) for at, size in enumerate(offered)]
    assert verdict_of(plugin_with(VolumeBinding, LOCAL, *claims, *volumes), TWO, NODE) == expected


MADE = {
    "anywhere": ([a_claim(), a_storage_class()], None),
    "in an allowed topology": ([a_claim(), a_storage_class(allowed=[HERE])], None),
    "outside": ([a_claim(), a_storage_class(allowed=[THERE])], NONE_FOUND),
    "any of the topologies will do": ([a_claim(), a_storage_class(allowed=[THERE, HERE])], None),
    "all labels of one must hold": ([a_claim(), a_storage_class(allowed=[{**HERE, "rack": ["1"]}])], NONE_FOUND),
    "an empty topology is nowhere": ([a_claim(), a_storage_class(allowed=[{}])], NONE_FOUND),
    "a class without a provisioner": ([a_claim(), a_storage_class(provisioner="")], NONE_FOUND),
    "where the node was selected before": ([a_claim(selected_node="node"), a_storage_class()], None),
    "where another was": ([a_claim(selected_node="other"), a_storage_class()], NONE_FOUND),
    "selected before: free volumes are not looked at": (
        [a_claim(selected_node="node", storage_class="local"), LOCAL, an_offer()],
        NONE_FOUND,
    ),
}


@pytest.mark.parametrize(("objects", "expected"), MADE.values(), ids=MADE.keys())
def test_claims_that_get_a_new_volume(objects, expected):
    assert verdict_of(plugin_with(VolumeBinding, *objects), POD, NODE) == expected


ROOM = {
    "enough": ([a_capacity(where={ZONE: "here"})], None),
    "too little": ([a_capacity(where={ZONE: "here"}, capacity="1Mi")], refused(NO_ROOM)),
    "a volume would be too large": ([a_capacity(where={}, largest="1Mi")], refused(NO_ROOM)),
    "the largest volume counts, not the sum": ([a_capacity(where={}, capacity="1", largest="2Gi")], None),
    "elsewhere": ([a_capacity(where={ZONE: "there"})], refused(NO_ROOM)),
    "no node has access": ([a_capacity(where=None)], refused(NO_ROOM)),
    "nothing is known": ([a_capacity(where={}, capacity=None)], refused(NO_ROOM)),
    "of another class": ([a_capacity(where={}, storage_class="other")], refused(NO_ROOM)),
    "no driver published any": ([], refused(NO_ROOM)),
}


@pytest.mark.parametrize(("capacities", "expected"), ROOM.values(), ids=ROOM.keys())
def test_room_of_drivers_that_count_it(capacities, expected):
    counting = plugin_with(VolumeBinding, a_claim(), a_storage_class(), a_csi_driver(), *capacities)
    assert verdict_of(counting, POD, NODE) == expected
    careless = plugin_with(VolumeBinding, a_claim(), a_storage_class(), a_csi_driver(counts=False), *capacities)
    assert verdict_of(careless, POD, NODE) is None


def test_a_claim_without_a_size_needs_no_room():
    assert (
        verdict_of(plugin_with(VolumeBinding, a_claim(size=None), a_storage_class(), a_csi_driver()), POD, NODE) is None
    )


def test_every_reason_is_reported():
    objects = [a_claim(volume="pv"), a_volume("pv", on=THERE), a_claim("more", storage_class="local"), LOCAL]
    assert verdict_of(plugin_with(VolumeBinding, *objects), TWO, NODE) == refused(NODE_CONFLICT, BIND_CONFLICT)


EPHEMERAL = a_pod(uid="me", volumes=[ephemeral_volume("v")])
REFUSED_AT_ONCE = {
    "a missing claim": (POD, [], 'persistentvolumeclaim "data" not found'),
    "a claim whose volume was lost": (
        POD,
        [a_claim(volume="pv", phase="Lost")],
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
    ),
    "a claim that is being deleted": (POD, [a_claim(deleting=True)], 'persistentvolumeclaim "data" is being deleted'),
    "a claim that should have been bound": (POD, [a_claim(), a_storage_class(mode="Immediate")], UNBOUND),
    "a claim whose class is gone": (POD, [a_claim()], UNBOUND),
    "a claim without a class": (POD, [a_claim(storage_class=None)], UNBOUND),
    "a claim that names its volume but is not bound": (
        POD,
        [a_claim(volume="pv", bound=False), a_storage_class()],
        UNBOUND,
    ),
    "an ephemeral claim that is not made yet": (
        EPHEMERAL,
        [],
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-v"',
    ),
    "an ephemeral claim of another pod": (
        EPHEMERAL,
        [a_claim("pod-v")],
        "PVC default/pod-v was not created for pod default/pod (pod is not owner)",
    ),
}


@pytest.mark.parametrize(("pod", "objects", "reason"), REFUSED_AT_ONCE.values(), ids=REFUSED_AT_ONCE.keys())
def test_claims_that_no_node_can_serve(pod, objects, reason):
    assert verdict_of(plugin_with(VolumeBinding, *objects), pod) == refused(reason)


def test_an_ephemeral_claim_of_its_own_is_a_claim():
    assert (
        verdict_of(plugin_with(VolumeBinding, a_claim("pod-v", owner=EPHEMERAL), a_storage_class()), EPHEMERAL) is None
    )


def test_a_pod_without_claims_is_not_looked_at():
    assert verdict_of(plugin_with(VolumeBinding), a_pod(volumes=[{"emptyDir": {}}])) == SKIPPED


def test_a_class_without_a_binding_mode_fails_the_attempt():
    with pytest.raises(Fault, match='VolumeBindingMode not set for StorageClass "wait"'):
        verdict_of(plugin_with(VolumeBinding, a_claim(), a_storage_class(mode=None)), POD)


ARGUMENTS = {
    "a negative time": {"bind_timeout_seconds": -1},
    "a point beyond 100 percent": {"shape": [{"utilization": 101, "score": 0}]},
    "a score beyond 10": {"shape": [{"utilization": 1, "score": 11}]},
    "points out of order": {"shape": [{"utilization": 5, "score": 1}, {"utilization": 5, "score": 2}]},
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS.keys())
def test_arguments_that_cannot_be(arguments):
    with pytest.raises(OperatorMistake):
        a_plugin(VolumeBinding, **arguments)


INLINE = a_pod(volumes=[{"csi": {"driver": "csi.example.com"}}])
WAKING = {
    "a class comes": (POD, None, a_storage_class(), True),
    "its topologies change": (POD, a_storage_class(), a_storage_class(allowed=[HERE]), True),
    "it changes otherwise": (POD, a_storage_class(), a_storage_class(provisioner="x"), False),
    "its claim comes": (POD, None, a_claim(), True),
    "its claim changes": (POD, a_claim(), a_claim(volume="pv"), True),
    "its ephemeral claim comes": (EPHEMERAL, None, a_claim("pod-v"), True),
    "another's claim": (POD, None, a_claim("other"), False),
    "a claim in another namespace": (POD, None, a_claim(namespace="shop"), False),
    "a volume changes": (POD, a_volume(), a_volume(), True),
    "a volume goes": (POD, a_volume(), None, False),
    "a node comes": (POD, None, a_node_object(), True),
    "a node's labels change": (POD, a_node_object(), a_node_object(labels={ZONE: "a"}), True),
    "a CSINode comes": (POD, None, a_csi_node(), True),
    "a plugin migrates": (POD, a_csi_node(), a_csi_node(migrated=["x"]), True),
    "a limit grows": (POD, a_csi_node(csi=1), a_csi_node(csi=2), False),
    "a driver stops counting": (INLINE, a_csi_driver(), a_csi_driver(counts=None), True),
    "a driver that it does not name does": (POD, a_csi_driver(), a_csi_driver(counts=False), False),
    "a driver starts counting": (INLINE, a_csi_driver(counts=False), a_csi_driver(), False),
    "room is published": (POD, None, a_capacity(), True),
    "there is more room": (POD, a_capacity(), a_capacity(capacity="11Gi"), True),
    "there is less": (POD, a_capacity(), a_capacity(capacity="9Gi"), False),
    "the largest volume grows": (POD, a_capacity(largest="1Gi"), a_capacity(largest="2Gi"), True),
}


@pytest.mark.parametrize(("pod", "before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(pod, before, after, expected):
    assert requeues(a_plugin(VolumeBinding), pod, before, after) is expected
