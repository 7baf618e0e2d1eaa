"""Whatever volumes there are: the fast form of each volume plugin means what its plain form means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import force_setattr

from mooring.base.errors import Fault
from mooring.framework import Refusal
from mooring.objects.migration import ZONE
from mooring.objects.storage import NO_PROVISIONER
from mooring.plugins.default.node_volume_limits import NodeVolumeLimits
from mooring.plugins.default.volume_binding import VolumeBinding
from mooring.plugins.default.volume_restrictions import VolumeRestrictions
from mooring.plugins.default.volume_zone import VolumeZone
from mooring.testing import (
    Services,
    a_cluster,
    a_cycle,
    a_node,
    a_plugin,
    a_pod,
    refused_at_once,
    refused_one_by_one,
    scored_at_once,
    scored_one_by_one,
)
from mooring.testing.storage import (
    a_capacity,
    a_claim,
    a_csi_driver,
    a_csi_node,
    a_storage_class,
    a_volume,
    an_attachment,
    claim_volume,
)

few = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NODES = ["n1", "n2", "n3"]
CLAIMS = ["c1", "c2", "c3"]
VOLUMES = ["v1", "v2", "v3", "v4"]
CLASSES = ["local", "wait"]
SIZES = ["1Gi", "2Gi", "5Gi"]

maybe_on = st.sampled_from(
    [None, {ZONE: ["a"]}, {ZONE: ["a", "b"]}, {"kubernetes.io/hostname": ["n1"]}, {ZONE: ["a"], "rack": ["1"]}]
)
disks = st.sampled_from(
    [
        {"gcePersistentDisk": {"pdName": "d"}},
        {"gcePersistentDisk": {"pdName": "d", "readOnly": True}},
        {"awsElasticBlockStore": {"volumeID": "vol-1"}},
        {"rbd": {"monitors": ["m"], "image": "i", "pool": "p", "readOnly": True}},
        {"emptyDir": {}},
    ]
)
pod_volumes = st.lists(st.sampled_from(CLAIMS).map(claim_volume) | disks, max_size=3)
claims = st.builds(
    a_claim,
    volume=st.sampled_from(["", "", *VOLUMES]),
    storage_class=st.sampled_from(CLASSES),
    size=st.sampled_from([*SIZES, None]),
    modes=st.sampled_from([["ReadWriteOnce"], ["ReadWriteOncePod"]]),
    selected_node=st.sampled_from([None, None, None, "n1"]),
)
volumes = st.builds(
    a_volume,
    size=st.sampled_from(SIZES),
    storage_class=st.sampled_from(CLASSES),
    modes=st.sampled_from([["ReadWriteOnce"], ["ReadWriteOncePod", "ReadWriteOnce"]]),
    labels=st.sampled_from([{}, {ZONE: "a"}, {ZONE: "a__b"}, {"failure-domain.beta.kubernetes.io/zone": "b"}]),
    on=maybe_on,
    claim=st.sampled_from([None, None, "default/c1", "default/c2"]),
    source=st.sampled_from([None, {"aws_elastic_block_store": {"volumeID": "vol-1"}}]),
)


@st.composite
def situations(draw: Any, *, gated: bool = False) -> tuple[Services, Any, Any]:
    """Services with storage objects, a cluster on them, and a pod."""
    services = Services(gates={"StorageCapacityScoring": True} if gated else None)

    def put(item: Any, name: str) -> None:
        force_setattr(item.metadata, "name", name)
        services.objects(type(item)).put(item)

    for name in CLAIMS:
        put(draw(claims), name)
    for name in draw(st.lists(st.sampled_from(VOLUMES), unique=True)):
        put(draw(volumes), name)
    put(a_storage_class(provisioner=draw(st.sampled_from(["csi.example.com", NO_PROVISIONER]))), "local")
    put(a_storage_class(allowed=draw(st.sampled_from([[], [{ZONE: ["a"]}]]))), "wait")
    put(a_csi_driver(counts=draw(st.booleans())), "csi.example.com")
    for at, where in enumerate(draw(st.lists(st.sampled_from([{}, {ZONE: "a"}, {ZONE: "b"}]), max_size=2))):
        put(a_capacity(storage_class="wait", where=where, capacity=draw(st.sampled_from(SIZES))), f"room-{at}")
    nodes = []
    for name in NODES:
        labels = draw(st.sampled_from([{}, {ZONE: "a"}, {ZONE: "b"}, {ZONE: "a", "rack": "1"}]))
        running = [a_pod(f"r-{name}-{at}", volumes=draw(pod_volumes)) for at in range(draw(st.integers(0, 2)))]
        nodes.append(a_node(name, labels=labels, running=running))
        if draw(st.booleans()):
            migrated = draw(st.sampled_from([[], ["kubernetes.io/aws-ebs"]]))
            put(a_csi_node(migrated=migrated, csi=draw(st.sampled_from([None, 0, 1, 2]))), name)
    for volume in draw(st.lists(st.sampled_from(VOLUMES), unique=True, max_size=2)):
        put(an_attachment(volume, "n1"), f"attached-{volume}")
    return services, a_cluster(*nodes, services=services), a_pod(volumes=draw(pod_volumes))


def either(call: Any, *arguments: Any) -> Any:
    """The result, or the message of the fault."""
    try:
        return call(*arguments)
    except Fault as problem:
        return str(problem)


@few
@pytest.mark.parametrize("cls", [VolumeRestrictions, NodeVolumeLimits, VolumeBinding, VolumeZone])
@given(situation=situations())
def test_the_fast_filter_means_what_the_plain_filter_means(cls, situation):
    services, cluster, pod = situation
    plugin = a_plugin(cls, services)
    assert either(refused_at_once, plugin, pod, cluster) == either(refused_one_by_one, plugin, pod, cluster)


@few
@given(situation=situations(gated=True))
def test_the_fast_score_means_what_the_plain_score_means(situation):
    services, cluster, pod = situation
    plugin = a_plugin(VolumeBinding, services)
    if isinstance(plugin.pre_filter(pod, a_cycle(pod, cluster)), Refusal):
        return
    refused = refused_one_by_one(plugin, pod, cluster)
    at_once, one_by_one = scored_at_once(plugin, pod, cluster), scored_one_by_one(plugin, pod, cluster)
    assert at_once is not None
    assert one_by_one is not None
    feasible = [node for node in NODES if node not in refused]
    assert [at_once[node] for node in feasible] == [one_by_one[node] for node in feasible]
