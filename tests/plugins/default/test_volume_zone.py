"""VolumeZone: zones and regions of bound volumes, claims that it cannot place, and what requeues a refused pod."""

from __future__ import annotations

import pytest
from tests.plugins.default.volume_plugins import SKIPPED, plugin_with, verdict_of
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNRESOLVABLE
from mooring.objects.migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from mooring.plugins.default.volume_zone import CONFLICT, VolumeZone
from mooring.testing import a_cluster, a_node, a_node_object, a_plugin, a_pod
from mooring.testing.storage import a_claim, a_storage_class, a_volume, claim_volume, ephemeral_volume

ELSEWHERE = (UNRESOLVABLE, (CONFLICT,))
POD = a_pod(volumes=[claim_volume("data")])

ZONES = {
    "in its zone": ({ZONE: "a"}, {ZONE: "a"}, None),
    "in another zone": ({ZONE: "a"}, {ZONE: "b"}, ELSEWHERE),
    "one of its zones": ({ZONE: "a__b"}, {ZONE: "b"}, None),
    "spaces around a zone do not count": ({ZONE: "a __ b"}, {ZONE: "b"}, None),
    "a label with an empty part is ignored": ({ZONE: "a__", REGION: "r"}, {ZONE: "b", REGION: "r"}, None),
    "zone and region must both hold": ({ZONE: "a", REGION: "r"}, {ZONE: "a", REGION: "s"}, ELSEWHERE),
    "a node without any zone takes everything": ({ZONE: "a"}, {"tier": "x"}, None),
    "a node with a region but no zone does not": ({ZONE: "a"}, {REGION: "r"}, ELSEWHERE),
    "a beta label, as the node has it": ({BETA_ZONE: "a"}, {BETA_ZONE: "a"}, None),
    "a beta label, where the node has the current one": ({BETA_ZONE: "a"}, {ZONE: "a"}, None),
    "a beta label, where the node's beta label differs": ({BETA_ZONE: "a"}, {BETA_ZONE: "b", ZONE: "a"}, ELSEWHERE),
    "a beta region likewise": ({BETA_REGION: "r"}, {REGION: "s"}, ELSEWHERE),
    "a current label is not matched by the beta one": ({ZONE: "a"}, {BETA_ZONE: "a"}, ELSEWHERE),
    "a volume without zones": ({"tier": "x"}, {ZONE: "a"}, SKIPPED),
}


@pytest.mark.parametrize(("volume", "node", "expected"), ZONES.values(), ids=ZONES.keys())
def test_zones_of_bound_volumes(volume, node, expected):
    plugin = plugin_with(VolumeZone, a_claim(volume="pv"), a_volume("pv", labels=volume))
    assert verdict_of(plugin, POD, a_node(labels=node)) == expected


CLAIMS = {
    "one that is missing": ([], 'persistentvolumeclaim "data" not found'),
    "one whose volume is gone": ([a_claim(volume="pv")], 'persistentvolume "pv" not found'),
    "one without volume and class": (
        [a_claim(storage_class=None)],
        "PersistentVolumeClaim had no pv name and storageClass name",
    ),
    "one whose class is gone": ([a_claim()], 'storageclass.storage.k8s.io "wait" not found'),
    "one whose class has no binding mode": (
        [a_claim(), a_storage_class(mode=None)],
        'VolumeBindingMode not set for StorageClass "wait"',
    ),
    "one that should have been bound": ([a_claim(), a_storage_class(mode="Immediate")], "PersistentVolume had no name"),
}


@pytest.mark.parametrize(("objects", "reason"), CLAIMS.values(), ids=CLAIMS.keys())
def test_claims_that_cannot_be_placed(objects, reason):
    assert verdict_of(plugin_with(VolumeZone, *objects), POD) == (UNRESOLVABLE, (reason,))


def test_a_claim_without_a_name():
    assert verdict_of(plugin_with(VolumeZone), a_pod(volumes=[claim_volume("")])) == (
        UNRESOLVABLE,
        ("PersistentVolumeClaim had no name",),
    )


def test_a_claim_that_waits_for_a_pod_has_no_zone_yet():
    assert verdict_of(plugin_with(VolumeZone, a_claim(), a_storage_class()), POD) == SKIPPED


def test_ephemeral_volumes_are_not_its_business():
    assert verdict_of(plugin_with(VolumeZone), a_pod(volumes=[ephemeral_volume("v")])) == SKIPPED


@pytest.mark.parametrize("form", ["filter", "filter_nodes"])
def test_where_pre_filter_is_switched_off_filter_finds_out_itself(form):
    class WithoutPreFilter(VolumeZone):
        name = "VolumeZone"
        pre_filter = None  # type: ignore[assignment]

    plugin = plugin_with(WithoutPreFilter)
    setattr(plugin, "filter_nodes" if form == "filter" else "filter", None)
    decision = a_cluster(a_node("a"), a_node("b"), plugins=[plugin]).decide(POD)
    assert verdict(decision.rejections["a"][1]) == (UNRESOLVABLE, ('persistentvolumeclaim "data" not found',))


WAKING = {
    "a class that waits for pods comes": (None, a_storage_class(), True),
    "one that does not": (None, a_storage_class(mode="Immediate"), False),
    "a class changes": (a_storage_class(), a_storage_class(), False),
    "a node comes": (None, a_node_object(), True),
    "a node's labels change": (a_node_object(), a_node_object(labels={ZONE: "a"}), True),
    "its claim comes": (None, a_claim(), True),
    "its claim changes": (a_claim(), a_claim(volume="pv"), True),
    "another's claim changes": (a_claim("x"), a_claim("x", volume="pv"), False),
    "a volume comes": (None, a_volume(), True),
    "a volume moves": (a_volume(labels={ZONE: "a"}), a_volume(labels={ZONE: "b"}), True),
    "a volume changes otherwise": (a_volume(labels={"tier": "a"}), a_volume(labels={"tier": "b"}), False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(VolumeZone), POD, before, after) is expected
