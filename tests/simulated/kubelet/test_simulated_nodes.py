"""The state of a simulated node: addresses and images."""

from __future__ import annotations

from tests.simulated.builders import a_node, a_pod

from mooring.simulated.kubelet.simulated_nodes import SimulatedNode
from mooring.simulated.records import ContainerRecord


def nginx(policy: str = "") -> ContainerRecord:
    return ContainerRecord(name="app", image="nginx:1.27", image_pull_policy=policy)


def reasons(events: list[tuple[str, str]]) -> list[str]:
    return [reason for reason, _ in events]


def test_the_first_pod_pulls_its_image_and_the_next_finds_it():
    host = SimulatedNode(a_node())

    assert reasons(host.pull(nginx())) == ["Pulling", "Pulled"]
    assert host.pull(nginx()) == [
        ("Pulled", 'Container image "nginx:1.27" already present on machine and can be accessed by the pod')
    ]


def test_the_messages_are_the_kubelets():
    host = SimulatedNode(a_node())
    pulling, pulled = (message for _, message in host.pull(nginx()))

    assert pulling == 'Pulling image "nginx:1.27"'
    assert pulled.startswith('Successfully pulled image "nginx:1.27" in ')
    assert " including waiting). Image size: " in pulled
    assert pulled.endswith(" bytes.")


def test_an_image_of_the_nodes_status_is_present():
    assert reasons(SimulatedNode(a_node(images=["nginx:1.27"])).pull(nginx())) == ["Pulled"]


def test_a_policy_of_always_pulls_every_time():
    host = SimulatedNode(a_node(images=["nginx:1.27"]))
    assert reasons(host.pull(nginx("Always"))) == ["Pulling", "Pulled"]
    assert not host.has_unreported_images


def test_pulled_images_are_news_for_the_nodes_status():
    host = SimulatedNode(a_node())
    host.pull(nginx())

    assert host.has_unreported_images
    assert [image["names"] for image in host.reported_images()] == [["nginx:1.27"]]


def test_running_pods_never_share_an_address():
    host = SimulatedNode(a_node())
    addresses = [host.admit(a_pod(f"pod-{index}")) for index in range(300)]

    assert len(set(addresses)) == 300
    assert addresses[0] == "10.128.0.2"


def test_an_address_is_kept_until_the_pod_is_forgotten_and_then_rests():
    host = SimulatedNode(a_node())
    first = host.admit(a_pod("one"))
    assert host.admit(a_pod("one")) == first

    host.forget(a_pod("one"))
    assert host.admit(a_pod("two")) != first


def test_a_pod_that_ran_before_keeps_its_address_for_itself():
    host = SimulatedNode(a_node())
    host.admit(a_pod("old", status={"podIP": "10.128.0.2"}))

    assert host.admit(a_pod("new")) == "10.128.0.3"


def test_a_pod_on_the_hosts_network_has_the_hosts_address():
    assert SimulatedNode(a_node()).admit(a_pod(host_network=True)) == "172.16.0.2"


def test_a_node_without_a_pod_range_still_gives_addresses():
    host = SimulatedNode(a_node(pod_cidr=""))
    assert host.admit(a_pod("one")) != host.admit(a_pod("two"))
