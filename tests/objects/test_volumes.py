"""A pod's volumes, as far as placement reads them."""

from __future__ import annotations

import pytest

from mooring.objects.volumes import Disk, PodVolume
from mooring.testing import a_pod

READ = {
    "a claim": ({"persistentVolumeClaim": {"claimName": "data"}}, (PodVolume(claim="data"),)),
    "an ephemeral volume has a claim named after pod and volume": (
        {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
        (PodVolume(claim="web-scratch", is_ephemeral=True),),
    ),
    "an RBD image": (
        {"rbd": {"monitors": ["b", "a"], "pool": "p", "image": "i", "readOnly": True}},
        (PodVolume(disk=Disk("rbd", "p/i", True, frozenset("ab"))),),
    ),
    "an EBS volume": (
        {"awsElasticBlockStore": {"volumeID": "vol-1"}},
        (
            PodVolume(
                disk=Disk("awsElasticBlockStore", "vol-1"),
                in_tree="kubernetes.io/aws-ebs",
                attached=("ebs.csi.aws.com", "vol-1"),
            ),
        ),
    ),
    "a disk that its driver cannot know": (
        {"name": "d", "azureDisk": {"diskURI": "u", "kind": "Shared"}},
        (
            PodVolume(
                in_tree="kubernetes.io/azure-disk",
                problem="converting volume(d) from inline to csi: kind(Shared) is not supported in csi migration",
            ),
        ),
    ),
    "a share that was not migrated here": (
        {"azureFile": {"shareName": "s"}},
        (PodVolume(in_tree="kubernetes.io/azure-file"),),
    ),
    "a source that is null is none": ({"persistentVolumeClaim": None}, ()),
    "what places nothing is left out": ({"projected": {"sources": []}}, ()),
}


@pytest.mark.parametrize(("volume", "expected"), READ.values(), ids=READ.keys())
def test_what_is_read_of_a_volume(volume, expected):
    assert a_pod("web", volumes=[volume]).volumes == expected
