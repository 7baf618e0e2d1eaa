"""VolumeRestrictions: disks that must not be shared, claims for one pod only, and what requeues a refused pod."""

from __future__ import annotations

import pytest
from tests.plugins.default.volume_plugins import SKIPPED, plugin_with, verdict_of
from tests.plugins.verdicts import requeues

from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE
from mooring.objects.placed import placed
from mooring.plugins.default.volume_restrictions import CLAIM_CONFLICT, DISK_CONFLICT, VolumeRestrictions
from mooring.testing import Services, a_cluster, a_node, a_node_object, a_plugin, a_pod
from mooring.testing.storage import a_claim, claim_volume, ephemeral_volume

REFUSED = (UNSCHEDULABLE, (DISK_CONFLICT,))


def gce(name: str = "disk", *, read_only: bool = False):
    return {"gcePersistentDisk": {"pdName": name, "readOnly": read_only}}


def aws(name: str = "vol-1", *, read_only: bool = False):
    return {"awsElasticBlockStore": {"volumeID": name, "readOnly": read_only}}


def iscsi(iqn: str = "iqn:a", *, read_only: bool = False):
    return {"iscsi": {"iqn": iqn, "targetPortal": "10.0.0.1:3260", "readOnly": read_only}}


def rbd(*monitors: str, image: str = "i", pool: str = "p", read_only: bool = False):
    return {"rbd": {"monitors": monitors, "image": image, "pool": pool, "readOnly": read_only}}


DISKS = {
    "the same GCE disk conflicts": (gce(), gce(), REFUSED),
    "also if only one of them writes": (gce(read_only=True), gce(), REFUSED),
    "not if both only read": (gce(read_only=True), gce(read_only=True), None),
    "another disk does not": (gce(), gce("other"), None),
    "the same EBS volume conflicts": (aws(), aws(), REFUSED),
    "even if both only read": (aws(read_only=True), aws(read_only=True), REFUSED),
    "the same iSCSI target conflicts": (iscsi(), iscsi(), REFUSED),
    "unless both only read": (iscsi(read_only=True), iscsi(read_only=True), None),
    "an RBD image conflicts by pool and name, if a monitor is shared": (rbd("a", "b"), rbd("b", "c"), REFUSED),
    "without a common monitor it is another": (rbd("a"), rbd("b"), None),
    "so it is in another pool": (rbd("a"), rbd("a", pool="q"), None),
    "and by another name": (rbd("a"), rbd("a", image="j"), None),
    "a read-only image may be shared": (rbd("a", read_only=True), rbd("a", read_only=True), None),
    "disks of different kinds never conflict": (gce("x"), aws("x"), None),
    "a claim conflicts with no disk": (gce("x"), claim_volume("x"), None),
}


@pytest.mark.parametrize(("wanted", "mounted", "expected"), DISKS.values(), ids=DISKS.keys())
def test_disks_that_a_pod_names_itself(wanted, mounted, expected):
    node = a_node(running=[a_pod("there", volumes=[mounted])])
    assert verdict_of(plugin_with(VolumeRestrictions), a_pod(volumes=[wanted]), node) == expected


def test_a_pod_without_disks_and_claims_is_not_looked_at():
    pod = a_pod(volumes=[{"emptyDir": {}}, {"projected": {"sources": []}}, {"gcePersistentDisk": None}])
    assert verdict_of(plugin_with(VolumeRestrictions), pod) == SKIPPED


def a_user(*claims: str, namespace: str = "default", uid: str | None = None):
    return a_pod("user", namespace=namespace, uid=uid, volumes=[claim_volume(claim) for claim in claims])


ALONE = a_claim("alone", modes=["ReadWriteOncePod"])
CLAIMS = {
    "a claim for one pod that no pod uses": (ALONE, [], SKIPPED),
    "one that another pod uses, anywhere": (ALONE, [a_user("alone")], (UNSCHEDULABLE, (CLAIM_CONFLICT,))),
    "one of that name in another namespace": (ALONE, [a_user("alone", namespace="shop")], SKIPPED),
    "a claim that may be shared": (a_claim("alone"), [a_user("alone")], SKIPPED),
    "a claim that is missing": (a_claim("other"), [], (UNRESOLVABLE, ('persistentvolumeclaim "alone" not found',))),
}


@pytest.mark.parametrize(("claim", "running", "expected"), CLAIMS.values(), ids=CLAIMS.keys())
def test_claims_for_one_pod(claim, running, expected):
    elsewhere = a_node("elsewhere", running=running)
    assert verdict_of(plugin_with(VolumeRestrictions, claim), a_user("alone"), others=[elsewhere]) == expected


def test_a_disk_conflict_is_reported_before_that_of_a_claim():
    plugin = plugin_with(VolumeRestrictions, ALONE)
    node = a_node(running=[a_pod(volumes=[gce(), claim_volume("alone")])])
    assert verdict_of(plugin, a_pod(volumes=[gce(), claim_volume("alone")]), node) == REFUSED


def test_evicting_one_user_is_enough_as_kube_scheduler_counts():
    services = Services(objects={type(ALONE): [ALONE]})
    users = [a_user("alone", uid="first"), a_user("alone", uid="second")]
    nodes = [a_node(f"n{at}", running=[user]) for at, user in enumerate(users)]
    cluster = a_cluster(*nodes, plugins=[a_plugin(VolumeRestrictions, services)], services=services)
    assert cluster.decide(a_user("alone")).node is None
    gone = cluster.state.pod("first")
    assert gone is not None
    with cluster.state.what_if("n0", without=[gone]):
        assert cluster.decide(a_user("alone")).node is not None
    assert cluster.decide(a_user("alone")).node is None


WAKING = {
    "a pod with the disk goes": (a_pod(volumes=[gce()]), placed(a_pod(volumes=[gce()]), "n"), None, True),
    "a pod with another disk goes": (a_pod(volumes=[gce()]), placed(a_pod(volumes=[gce("x")]), "n"), None, False),
    "a user of the claim goes": (a_user("alone"), placed(a_user("alone"), "n"), None, True),
    "one in another namespace goes": (a_user("alone"), placed(a_user("alone", namespace="shop"), "n"), None, False),
    "a node comes": (a_user("alone"), None, a_node_object(), True),
    "its claim comes": (a_user("alone"), None, ALONE, True),
    "another claim comes": (a_user("alone"), None, a_claim("other"), False),
    "the claim of an ephemeral volume comes": (a_pod(volumes=[ephemeral_volume("v")]), None, a_claim("pod-v"), False),
    "its claim changes": (a_user("alone"), ALONE, ALONE, False),
}


@pytest.mark.parametrize(("pod", "before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(pod, before, after, expected):
    assert requeues(plugin_with(VolumeRestrictions), pod, before, after) is expected
