"""The compact record of a pod on its node."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from msgspec.structs import force_setattr

from mooring.objects import Pod
from mooring.objects.core import ContainerStatus
from mooring.objects.placed import confirmed, host_ports, placed
from mooring.testing import a_pod, requires


def test_a_record_keeps_what_accounting_and_preemption_read():
    affinity = requires([("disk", "In", ["ssd"])])
    pod = a_pod(
        "web-0", namespace="shop", uid="u1", cpu="250m", labels={"a": "b"}, priority=7, owner="o1", affinity=affinity
    )
    force_setattr(pod.status, "start_time", "2023-11-14T22:13:20Z")
    record = placed(pod, "node-1", assumed_at=5.0)
    assert (record.uid, record.key, record.node, record.labels) == ("u1", "shop/web-0", "node-1", {"a": "b"})
    assert (record.request("cpu"), record.request("memory"), record.priority) == (250, 0, 7)
    assert (record.owner_uid, record.started, record.assumed_at) == ("o1", 1_700_000_000, 5.0)
    assert record.affinity == affinity
    assert (record.is_terminating, record.resource_version) == (False, "1")


def test_a_bound_pod_is_recorded_where_it_is():
    record = placed(a_pod(node="node-2"))
    assert (record.node, record.assumed_at, record.started, record.owner_uid) == ("node-2", None, None, "")


def test_the_node_we_are_about_to_bind_to_comes_first():
    assert placed(a_pod(node="node-2"), "node-3").node == "node-3"


def test_only_the_controlling_owner_counts():
    owners = [{"uid": "friend"}, {"uid": "boss", "controller": True}]
    assert placed(msgspec.convert({"metadata": {"ownerReferences": owners}}, Pod)).owner_uid == "boss"


def test_a_pod_that_is_being_deleted_is_terminating():
    assert placed(msgspec.convert({"metadata": {"deletionTimestamp": "2023-11-14T22:13:20Z"}}, Pod)).is_terminating


def test_host_ports_are_those_of_containers_and_sidecars():
    pod = msgspec.convert(
        {
            "spec": {
                "initContainers": [
                    {"restartPolicy": "Always", "ports": [{"hostPort": 1}]},
                    {"ports": [{"hostPort": 2}]},
                ],
                "containers": [
                    {"ports": [{"hostPort": 80, "hostIP": "10.0.0.1", "protocol": "UDP"}, {"containerPort": 81}]}
                ],
            }
        },
        Pod,
    )
    assert host_ports(pod) == (("0.0.0.0", "TCP", 1), ("10.0.0.1", "UDP", 80))


def _bound() -> Pod:
    """The pod that `_assumed` is the record of, as the watch shows it bound."""
    pod = a_pod("web-0", uid="u1", cpu="250m", labels={"a": "b"}, owner="o1", node="node-1", priority=7, ports=[80])
    force_setattr(pod.metadata, "generation", 1)
    force_setattr(pod.metadata, "resource_version", "2")
    return pod


def _assumed(generation: int = 1) -> Pod:
    pod = a_pod("web-0", uid="u1", cpu="250m", labels={"a": "b"}, owner="o1", priority=7, ports=[80])
    force_setattr(pod.metadata, "generation", generation)
    return pod


def _with_labels_of_its_node(pod: Pod) -> None:
    force_setattr(pod.metadata, "labels", {**pod.labels, "topology.kubernetes.io/zone": "z1"})


@pytest.mark.parametrize("change", [lambda _: None, _with_labels_of_its_node])
def test_what_was_assumed_is_confirmed_without_reading_the_spec_again(change: Callable[[Pod], None]):
    bound = _bound()
    change(bound)
    assert confirmed(placed(_assumed(), "node-1", assumed_at=5.0), bound) == placed(bound)


def _resized(pod: Pod) -> None:
    force_setattr(pod.metadata, "generation", 2)


def _started(pod: Pod) -> None:
    force_setattr(pod.status, "start_time", "2023-11-14T22:13:20Z")


def _reported(pod: Pod) -> None:
    force_setattr(pod.status, "container_statuses", (ContainerStatus(name="main"),))


def _elsewhere(pod: Pod) -> None:
    force_setattr(pod.spec, "node_name", "node-2")


def _deleted(pod: Pod) -> None:
    force_setattr(pod.metadata, "deletion_timestamp", "2023-11-14T22:13:20Z")


def _orphaned(pod: Pod) -> None:
    force_setattr(pod.metadata, "owner_references", ())


@pytest.mark.parametrize("change", [_resized, _started, _reported, _elsewhere, _deleted, _orphaned])
def test_a_pod_that_changed_since_it_was_assumed_is_read_again(change: Callable[[Pod], None]):
    bound = _bound()
    change(bound)
    assert confirmed(placed(_assumed(), "node-1", assumed_at=5.0), bound) is None


def test_a_pod_without_a_generation_is_read_again():
    bound = _bound()
    force_setattr(bound.metadata, "generation", 0)
    assert confirmed(placed(_assumed(generation=0), "node-1", assumed_at=5.0), bound) is None
