"""In-tree volumes as their CSI drivers know them: handles, and the nodes that can use them."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.objects.core import NodeSelector
from mooring.objects.migration import (
    BETA_REGION,
    BETA_ZONE,
    BY_SOURCE,
    REGION,
    ZONE,
    Untranslatable,
    csi_source_of,
    handle_of,
    in_tree_of,
    migrated_nodes_of,
)
from mooring.objects.storage import PersistentVolume
from mooring.testing.storage import a_volume

EBS_ZONE, GKE_ZONE = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"
EBS = {"aws_elastic_block_store": {"volumeID": "vol-1"}}
GCE = {"gce_persistent_disk": {"pdName": "disk"}}
UNZONED = "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/disk"

INLINE = {
    "an EBS volume by its id": ("awsElasticBlockStore", {"volumeID": "vol-1"}, "vol-1"),
    "an EBS volume by its address": ("awsElasticBlockStore", {"volumeID": "aws://us-east-1a/vol-1"}, "vol-1"),
    "an EBS volume by an address without a zone": ("awsElasticBlockStore", {"volumeID": "aws:///vol-1"}, "vol-1"),
    "a GCE disk": ("gcePersistentDisk", {"pdName": "disk"}, UNZONED),
    "an Azure disk": ("azureDisk", {"diskURI": "uri", "kind": "Managed"}, "uri"),
    "a Cinder volume": ("cinder", {"volumeID": "c"}, "c"),
    "a Portworx volume": ("portworxVolume", {"volumeID": "p"}, "p"),
}


@pytest.mark.parametrize(("source", "value", "handle"), INLINE.values(), ids=INLINE.keys())
def test_handles_of_disks_that_a_pod_names(source, value, handle):
    assert handle_of(BY_SOURCE[source], value) == handle


HANDLES: dict[str, tuple[PersistentVolume, str]] = {
    "a GCE disk in no known zone": (a_volume(source=GCE), UNZONED),
    "in one zone": (a_volume(source=GCE, labels={ZONE: "a"}), "projects/UNSPECIFIED/zones/a/disks/disk"),
    "the beta label goes first": (
        a_volume(source=GCE, labels={ZONE: "a", BETA_ZONE: "b"}),
        "projects/UNSPECIFIED/zones/b/disks/disk",
    ),
    "in two zones of a region": (
        a_volume(source=GCE, labels={ZONE: "us-east1-b__us-east1-c"}),
        "projects/UNSPECIFIED/regions/us-east1/disks/disk",
    ),
    "an EBS volume": (a_volume(source=EBS), "vol-1"),
    "an Azure disk": (a_volume(source={"azure_disk": {"diskURI": "uri"}}), "uri"),
}


@pytest.mark.parametrize(("volume", "handle"), HANDLES.values(), ids=HANDLES.keys())
def test_handles_of_volumes(volume, handle):
    in_tree = in_tree_of(volume)
    assert in_tree is not None
    assert (csi_source_of(volume, in_tree).driver, csi_source_of(volume, in_tree).volume_handle) == (
        in_tree.driver,
        handle,
    )


UNKNOWN = {
    "an address that names no volume": a_volume(source={"aws_elastic_block_store": {"volumeID": "aws://z/disk"}}),
    "zones that are none": a_volume(source=GCE, labels={ZONE: "a__b"}),
    "zones of two regions": a_volume(source=GCE, labels={ZONE: "us-east1-b__us-west1-b"}),
    "an unmanaged Azure disk": a_volume(source={"azure_disk": {"diskURI": "u", "kind": "Shared"}}),
}


@pytest.mark.parametrize("volume", UNKNOWN.values(), ids=UNKNOWN.keys())
def test_volumes_that_a_driver_cannot_know(volume):
    in_tree = in_tree_of(volume)
    assert in_tree is not None
    with pytest.raises(Untranslatable):
        csi_source_of(volume, in_tree)


def test_other_volumes_are_no_in_tree_ones():
    assert in_tree_of(a_volume()) is None
    assert in_tree_of(a_volume(source={})) is None


def shown(selector: NodeSelector | None) -> Any:
    """The terms, each as label → values."""
    return selector and [
        {part.key: tuple(part.values) for part in term.match_expressions} for term in selector.node_selector_terms
    ]


NODES: dict[str, tuple[PersistentVolume, Any]] = {
    "no affinity and no labels": (a_volume(source=EBS), None),
    "affinity for a zone becomes the driver's": (a_volume(source=EBS, on={ZONE: ["a"]}), [{EBS_ZONE: ("a",)}]),
    "for a beta zone too": (a_volume(source=EBS, on={BETA_ZONE: ["a"]}), [{EBS_ZONE: ("a",)}]),
    "a beta region then becomes the current one": (
        a_volume(source=EBS, on={BETA_ZONE: ["a"], BETA_REGION: ["r"]}),
        [{EBS_ZONE: ("a",), REGION: ("r",)}],
    ),
    "with a current zone it stays": (
        a_volume(source=EBS, on={ZONE: ["a"], BETA_REGION: ["r"]}),
        [{EBS_ZONE: ("a",), BETA_REGION: ("r",)}],
    ),
    "a zone label becomes affinity": (a_volume(source=EBS, labels={ZONE: "b__a"}), [{EBS_ZONE: ("a", "b")}]),
    "besides what is there": (
        a_volume(source=EBS, labels={ZONE: "a"}, on={"rack": ["1"]}),
        [{"rack": ("1",), EBS_ZONE: ("a",)}],
    ),
    "but not besides a zone": (a_volume(source=EBS, labels={ZONE: "b"}, on={ZONE: ["a"]}), [{EBS_ZONE: ("a",)}]),
    "an empty label is none": (a_volume(source=EBS, labels={ZONE: ""}), None),
    "each driver has a label of its own": (a_volume(source=GCE, on={ZONE: ["a"]}), [{GKE_ZONE: ("a",)}]),
    "a driver without one changes nothing": (
        a_volume(source={"azure_disk": {"diskURI": "u"}}, on={ZONE: ["a"]}),
        [{ZONE: ("a",)}],
    ),
}


@pytest.mark.parametrize(("volume", "terms"), NODES.values(), ids=NODES.keys())
def test_nodes_that_can_use_a_migrated_volume(volume, terms):
    in_tree = in_tree_of(volume)
    assert in_tree is not None
    assert shown(migrated_nodes_of(volume, in_tree)) == terms
