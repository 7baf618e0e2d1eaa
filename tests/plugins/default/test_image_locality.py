"""ImageLocality: whose images count, how much, and under which names nodes list them."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr

from mooring.objects.core import Container, ContainerImage, Node, NodeStatus
from mooring.objects.meta import ObjectMeta
from mooring.plugins.default.image_locality import ImageLocality
from mooring.testing import a_cluster, a_cycle, a_node, a_plugin, a_pod
from mooring.testing.forms import scored_at_once, scored_one_by_one

MIB = 1024 * 1024


def a_pod_of(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()):
    pod = a_pod()
    force_setattr(pod.spec, "containers", tuple(Container(image=image) for image in images))
    force_setattr(pod.spec, "init_containers", tuple(Container(image=image) for image in init))
    force_setattr(
        pod.spec,
        "_volumes",
        tuple({"name": f"v{at}", "image": {"reference": image}} for at, image in enumerate(volumes)),
    )
    return pod


def scores(pod, cluster):
    plugin = a_plugin(ImageLocality)
    one_by_one = scored_one_by_one(plugin, pod, cluster)
    assert one_by_one is not None
    assert scored_at_once(plugin, pod, cluster) == one_by_one
    return [one_by_one[node.name] for node in cluster.nodes]


def share(mib: float, containers: int = 1) -> int:
    return int(100 * (mib - 23) // (1000 * containers - 23))


HERE = {"app:1": 500 * MIB, "db:latest": 300 * MIB, "example.com:5000/tools:latest": 100 * MIB}
CASES = {
    "an image that is there counts with its size": (a_pod_of("app:1"), share(500)),
    "one that is nowhere counts nothing": (a_pod_of("app:2"), 0),
    "a name without a tag is the latest": (a_pod_of("db"), share(300)),
    "a port in the name is no tag": (a_pod_of("example.com:5000/tools"), share(100)),
    "a digest is as good as a tag": (a_pod_of("db@sha256:abc"), 0),
    "containers add up, and so does what would be enough": (a_pod_of("app:1", "db"), share(800, 2)),
    "an image that is used twice counts twice": (a_pod_of("db", "db"), share(600, 2)),
    "init containers count alike": (a_pod_of("app:1", init=("db",)), share(800, 2)),
    "image volumes add to the sum only": (a_pod_of("db", volumes=("app:1",)), share(800)),
    "other volumes do not matter": (a_pod_of("db", volumes=("",)), share(300)),
    "more than enough is no better": (a_pod_of("db", volumes=("app:1", "app:1")), 100),
    "next to nothing is nothing": (a_pod_of("db", *["none"] * 20), share(300, 21)),
    "many different images": (
        a_pod_of("app:1", "db", "example.com:5000/tools", "app:1", "db", "elsewhere"),
        share(1700, 6),
    ),
    "a pod without containers": (a_pod_of(), 0),
}


@pytest.mark.parametrize(("pod", "expected"), CASES.values(), ids=CASES.keys())
def test_what_one_node_has(pod, expected):
    assert scores(pod, a_cluster(a_node(images=HERE))) == [expected]


def test_an_image_counts_in_the_proportion_of_nodes_that_have_it():
    cluster = a_cluster(
        a_node("a", images={"app:1": 900 * MIB}), a_node("b", images={"app:1": 900 * MIB}), a_node("c"), a_node("d")
    )
    assert scores(a_pod_of("app:1"), cluster) == [share(450), share(450), 0, 0]


def test_every_image_is_seen_on_its_own_nodes():
    cluster = a_cluster(
        a_node("a", images={"x:1": 800 * MIB, "y:1": 400 * MIB}), a_node("b", images={"y:1": 400 * MIB}), a_node("c")
    )
    assert scores(a_pod_of("x:1", "y:1"), cluster) == [
        share(800 / 3 + 800 / 3, 2),
        share(800 / 3, 2),
        0,
    ]


def test_the_size_is_what_the_first_node_reported():
    cluster = a_cluster(a_node("a", images={"app:1": 100 * MIB}), a_node("b", images={"app:1": 900 * MIB}))
    assert scores(a_pod_of("app:1"), cluster) == [share(100), share(100)]


def test_an_image_is_known_by_each_of_its_names_and_once_by_each():
    image = ContainerImage(names=("app:1", "app@sha256:abc", "app:1"), size_bytes=500 * MIB)
    again = ContainerImage(names=("app:1",), size_bytes=900 * MIB)
    cluster = a_cluster()
    cluster.state.set_node(Node(metadata=ObjectMeta(name="a"), status=NodeStatus(images=(image, again))))
    assert scores(a_pod_of("app@sha256:abc"), cluster) == [share(500)]
    assert scores(a_pod_of("app:1"), cluster) == [share(500)]


def test_it_scores_the_nodes_it_is_given():
    cluster = a_cluster(a_node("a"), a_node("b", images={"app:1": 500 * MIB}), a_node("c"))
    some = cluster.state.nodes.take(cluster.state.nodes.rows[[2, 1]])
    pod = a_pod_of("app:1")
    assert a_plugin(ImageLocality).score_nodes(pod, some, a_cycle(pod, cluster)).tolist() == [0, share(500 / 3)]
