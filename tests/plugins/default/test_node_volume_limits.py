"""NodeVolumeLimits: what is counted, against which limit, and what requeues a refused pod."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.plugins.default.volume_plugins import SKIPPED, plugin_with, verdict_of
from tests.plugins.verdicts import requeues

from mooring.base.errors import Fault
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE
from mooring.objects.placed import placed
from mooring.objects.storage import CSINode
from mooring.plugins.default.node_volume_limits import TOO_MANY, NodeVolumeLimits
from mooring.testing import Services, a_node, a_plugin, a_pod
from mooring.testing.storage import (
    DRIVER,
    a_claim,
    a_csi_node,
    a_storage_class,
    a_volume,
    an_attachment,
    claim_volume,
    ephemeral_volume,
)

FULL = (UNSCHEDULABLE, (TOO_MANY,))
AWS = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
MINE = a_claim("mine", volume="pv-mine"), a_volume("pv-mine")
THEIRS = a_claim("theirs", volume="pv-theirs"), a_volume("pv-theirs")
UNBOUND = a_claim("unbound", storage_class="wait")


def a_user(*claims: str, name: str = "user"):
    return a_pod(name, volumes=[claim_volume(claim) for claim in claims])


def ebs_node(limit: int):
    node = a_csi_node(csi=limit)
    assert node.spec.drivers is not None
    force_setattr(node.spec.drivers[0], "name", "ebs.csi.aws.com")
    return node


COUNTS = {
    "there is room": (a_user("mine"), [a_user("theirs")], [a_csi_node(csi=2)], None),
    "there is none": (a_user("mine"), [a_user("theirs")], [a_csi_node(csi=1)], FULL),
    "a limit of none": (a_user("mine"), [], [a_csi_node(csi=0)], FULL),
    "the driver has no limit": (a_user("mine"), [a_user("theirs")], [a_csi_node(csi=None)], None),
    "another driver's limit": (a_user("mine"), [a_user("theirs")], [a_csi_node(other=0)], None),
    "the node has no CSINode": (a_user("mine"), [a_user("theirs")], [a_csi_node("elsewhere", csi=0)], None),
    "a volume that is there already": (a_user("mine"), [a_user("mine", name="b")], [a_csi_node(csi=1)], None),
    "a volume that two pods mount counts once": (
        a_user("mine"),
        [a_user("theirs", name="b"), a_user("theirs", name="c")],
        [a_csi_node(csi=2)],
        None,
    ),
    "a claim without a volume counts for its class": (a_user("unbound"), [a_user("theirs")], [a_csi_node(csi=1)], FULL),
    "on a node too": (a_user("mine"), [a_user("unbound")], [a_csi_node(csi=1)], FULL),
    "a claim that is gone does not count": (a_user("mine"), [a_user("gone")], [a_csi_node(csi=1)], None),
    "what is attached beyond the pods counts": (
        a_user("mine"),
        [],
        [a_csi_node(csi=1), an_attachment("pv-theirs", "node")],
        FULL,
    ),
    "what is attached for a pod counts once": (
        a_user("mine"),
        [a_user("theirs")],
        [a_csi_node(csi=2), an_attachment("pv-theirs", "node")],
        None,
    ),
    "attached to another node": (a_user("mine"), [], [a_csi_node(csi=1), an_attachment("pv-theirs", "other")], None),
    "attached, but the volume is gone": (a_user("mine"), [], [a_csi_node(csi=1), an_attachment("gone", "node")], None),
    "an in-tree disk counts for the driver that took over": (a_pod(volumes=[AWS]), [], [ebs_node(0)], FULL),
    "on a node too, by its own name": (a_pod(volumes=[AWS]), [a_pod(volumes=[AWS])], [ebs_node(1)], None),
    "an in-tree volume of a claim counts likewise": (
        a_user("old"),
        [a_pod(volumes=[{"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}])],
        [
            ebs_node(1),
            a_claim("old", volume="pv-old"),
            a_volume("pv-old", source={"aws_elastic_block_store": {"volumeID": "vol-2"}}),
        ],
        FULL,
    ),
    "the same disk by claim and by its own name is one": (
        a_user("old"),
        [a_pod(volumes=[{"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}])],
        [
            ebs_node(1),
            a_claim("old", volume="pv-old"),
            a_volume("pv-old", source={"aws_elastic_block_store": {"volumeID": "vol-1"}}),
        ],
        None,
    ),
    "a class of an in-tree provisioner counts for its driver": (
        a_user("old"),
        [],
        [ebs_node(0), a_claim("old", storage_class="ebs"), a_storage_class("ebs", provisioner="kubernetes.io/aws-ebs")],
        FULL,
    ),
    "in-tree files are not taken over": (
        a_user("old"),
        [],
        [
            a_csi_node(csi=0),
            a_claim("old", storage_class="f"),
            a_storage_class("f", provisioner="kubernetes.io/azure-file"),
        ],
        None,
    ),
    "a volume of no CSI driver": (
        a_user("nfs"),
        [],
        [a_csi_node(csi=0), a_claim("nfs", volume="nfs"), a_volume("nfs", source={})],
        None,
    ),
    "a missing claim": (
        a_user("gone"),
        [],
        [],
        (UNRESOLVABLE, ('looking up PVC default/gone: persistentvolumeclaim "gone" not found',)),
    ),
    "no claims and no disks": (a_pod(volumes=[{"emptyDir": {}}]), [], [a_csi_node(csi=0)], SKIPPED),
    "a disk that no driver knows": (a_pod(volumes=[{"rbd": {"monitors": ["a"]}}]), [], [a_csi_node(csi=0)], SKIPPED),
}


@pytest.mark.parametrize(("pod", "running", "objects", "expected"), COUNTS.values(), ids=COUNTS.keys())
def test_what_is_counted(pod, running, objects, expected):
    plugin = plugin_with(NodeVolumeLimits, *MINE, *THEIRS, UNBOUND, a_storage_class(), *objects)
    assert verdict_of(plugin, pod, a_node(running=running)) == expected


def test_limits_follow_the_csi_nodes_and_the_nodes():
    services = Services(objects={type(item): [item] for item in (*MINE, a_csi_node(csi=0))})
    plugin = a_plugin(NodeVolumeLimits, services)
    assert verdict_of(plugin, a_user("mine")) == FULL
    services.objects(CSINode).put(a_csi_node(csi=1))
    assert verdict_of(plugin, a_user("mine")) is None
    assert verdict_of(plugin, a_user("mine"), a_node("new"), others=[a_node()]) is None


FAULTS = {
    "an ephemeral volume's claim of another pod": (ephemeral_volume("v"), "was not created for pod default/pod"),
    "a claim without a name": (claim_volume(""), "had no name"),
    "a disk that its driver cannot know": ({"awsElasticBlockStore": {"volumeID": "aws://z/disk"}}, "converting volume"),
}


@pytest.mark.parametrize(("volume", "words"), FAULTS.values(), ids=FAULTS.keys())
def test_what_fails_the_attempt(volume, words):
    plugin = plugin_with(NodeVolumeLimits, a_claim("pod-v"), a_csi_node(csi=1))
    with pytest.raises(Fault, match=words):
        verdict_of(plugin, a_pod(volumes=[volume]))


@pytest.mark.parametrize("volume", [ephemeral_volume("v"), FAULTS["a disk that its driver cannot know"][0]])
def test_the_same_on_a_running_pod_is_not_counted(volume):
    plugin = plugin_with(NodeVolumeLimits, *MINE, a_claim("there-v", volume="pv"), a_volume("pv"), a_csi_node(csi=1))
    assert verdict_of(plugin, a_user("mine"), a_node(running=[a_pod("there", volumes=[volume])])) is None


WAKING = {
    "a CSINode comes": (a_user("mine"), None, a_csi_node(csi=0), True),
    "a limit grows": (a_user("mine"), a_csi_node(csi=1), a_csi_node(csi=2), True),
    "a limit shrinks": (a_user("mine"), a_csi_node(csi=2), a_csi_node(csi=1), False),
    "a pod with a claim goes": (a_user("mine"), placed(a_user("theirs"), "n"), None, True),
    "a pod without goes": (a_user("mine"), placed(a_pod(), "n"), None, False),
    "a nominated one goes": (a_user("mine"), a_pod(nominated="n", volumes=[AWS]), None, True),
    "a pod that held no place goes": (a_user("mine"), a_user("theirs"), None, False),
    "its claim comes": (a_user("mine"), None, a_claim("mine"), True),
    "its ephemeral claim comes": (a_pod(volumes=[ephemeral_volume("v")]), None, a_claim("pod-v"), True),
    "another claim comes": (a_user("mine"), None, a_claim("other"), False),
    "something is detached, and it has a claim": (a_user("mine"), an_attachment("x", "n"), None, True),
    "its disk's driver detaches": (a_pod(volumes=[AWS]), an_attachment("x", "n", driver="ebs.csi.aws.com"), None, True),
    "another driver detaches": (a_pod(volumes=[AWS]), an_attachment("x", "n", driver=DRIVER), None, False),
}


@pytest.mark.parametrize(("pod", "before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(pod, before, after, expected):
    assert requeues(plugin_with(NodeVolumeLimits), pod, before, after) is expected
