"""VolumeBinding under the gate StorageCapacityScoring: how full the pod would make the storage it gets."""

from __future__ import annotations

import pytest
from tests.plugins.default.volume_plugins import plugin_with

from mooring.objects.migration import ZONE
from mooring.objects.storage import NO_PROVISIONER
from mooring.plugins.default.volume_binding import VolumeBinding
from mooring.testing import a_cluster, a_node, a_pod, scored_one_by_one
from mooring.testing.storage import a_capacity, a_claim, a_csi_driver, a_storage_class, a_volume, claim_volume

ON = {"StorageCapacityScoring": True}
CLASSES = [a_storage_class(), a_storage_class("local", provisioner=NO_PROVISIONER), a_csi_driver()]
POD = a_pod(volumes=[claim_volume("data"), claim_volume("more")])
FULLER_IS_BETTER = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]


def scores(*objects, pod=POD, **arguments):
    """The raw scores of two nodes, `a` and `b`, in zones of these names."""
    plugin = plugin_with(VolumeBinding, *CLASSES, *objects, gates=ON, **arguments)
    cluster = a_cluster(a_node("a", labels={ZONE: "a"}), a_node("b", labels={ZONE: "b"}), plugins=[plugin])
    columns = cluster.decide(pod).columns()
    assert columns is not None
    assert "VolumeBinding" in columns.raw
    found = dict(zip(columns.nodes, columns.raw["VolumeBinding"].tolist(), strict=True))
    assert scored_one_by_one(plugin, pod, cluster) == found
    return found["a"], found["b"]


ONE = a_pod(volumes=[claim_volume("data")])
LOCAL = a_claim(storage_class="local", size="5Gi")


def on(zone: str, size: str, name: str | None = None):
    return a_volume(name or f"pv-{zone}", storage_class="local", size=size, on={ZONE: [zone]})


def room(zone: str, capacity: str):
    return a_capacity(f"room-{zone}", capacity=capacity, where={ZONE: zone})


CASES = {
    "the emptier volume is better": (ONE, [LOCAL, on("a", "5Gi"), on("b", "10Gi")], (0, 50)),
    "so is the emptier pool": (ONE, [a_claim(size="5Gi"), room("a", "50Gi"), room("b", "10Gi")], (90, 50)),
    "two claims of one class share its pool": (
        POD,
        [a_claim(size="2Gi"), a_claim("more", size="3Gi"), room("a", "10Gi"), room("b", "20Gi")],
        (50, 75),
    ),
    "together they may be more than it has": (
        POD,
        [a_claim(size="8Gi"), a_claim("more", size="8Gi"), room("a", "10Gi"), room("b", "16Gi")],
        (0, 0),
    ),
    "existing volumes of one class add up": (
        POD,
        [LOCAL, a_claim("more", storage_class="local", size="10Gi")]
        + [
            on(zone, size, f"{zone}{size}")
            for zone, size in [("a", "5Gi"), ("a", "10Gi"), ("b", "10Gi"), ("b", "20Gi")]
        ],
        (0, 50),
    ),
    "where there is an existing volume, pools do not count": (
        POD,
        [LOCAL, a_claim("more", size="1Gi"), on("a", "10Gi"), on("b", "20Gi"), room("a", "100Gi"), room("b", "1Gi")],
        (50, 75),
    ),
    "a pool without published capacity is not scored": (
        ONE,
        [a_claim(storage_class="free"), a_storage_class("free", provisioner="other.example.com")],
        (0, 0),
    ),
    "a bound claim is not scored": (ONE, [a_claim(volume="pv"), a_volume("pv")], (0, 0)),
    "a pod without claims": (a_pod(), [], (0, 0)),
}


@pytest.mark.parametrize(("pod", "objects", "expected"), CASES.values(), ids=CASES.keys())
def test_how_full_the_storage_would_be(pod, objects, expected):
    assert scores(*objects, pod=pod) == expected


def test_the_mean_over_classes_is_rounded_half_up():
    objects = [LOCAL, a_claim("more", storage_class="other", size="1Gi"), a_storage_class("other", provisioner="")]
    volumes = [on("a", "10Gi"), on("b", "10Gi")]
    volumes += [a_volume(f"o-{zone}", storage_class="other", size="100Gi", on={ZONE: [zone]}) for zone in "ab"]
    assert scores(*objects, *volumes) == (75, 75)  # 50 and 99: 74.5


def test_the_shape_turns_it_round():
    assert scores(LOCAL, on("a", "5Gi"), on("b", "10Gi"), pod=ONE, shape=FULLER_IS_BETTER) == (100, 50)


def test_without_the_gate_nothing_is_scored():
    plugin = plugin_with(VolumeBinding, *CLASSES, LOCAL, on("a", "5Gi"), on("b", "10Gi"))
    cluster = a_cluster(a_node("a", labels={ZONE: "a"}), a_node("b", labels={ZONE: "b"}), plugins=[plugin])
    decision = cluster.decide(ONE)
    assert decision.cycle.skipped_scores == {"VolumeBinding"}
