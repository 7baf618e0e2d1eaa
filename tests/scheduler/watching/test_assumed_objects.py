"""What the scheduler has written itself is read at once, until the watch has come as far."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.lists import list_into

from mooring.framework.events import ClusterEvent
from mooring.objects import KubeObject, ObjectMeta
from mooring.objects.resource import ConsumerReference, ResourceClaim
from mooring.scheduler.watching.informers import ObjectStore


def a_claim(version: int, *users: str, uid: str = "u1") -> ResourceClaim:
    claim = ResourceClaim(metadata=ObjectMeta(name="claim", namespace="shop", uid=uid, resource_version=str(version)))
    force_setattr(
        claim.status, "reserved_for", tuple(ConsumerReference(resource="pods", name=user, uid=user) for user in users)
    )
    return claim


class Cluster:
    """A store that the watch has filled with one claim, of version 9."""

    def __init__(self) -> None:
        self.received: list[str] = []
        self.store = ObjectStore(ResourceClaim, self.publish, lambda: None)
        list_into(self.store, [a_claim(9)])
        self.received.clear()

    def publish(self, event: ClusterEvent, old: KubeObject | None, new: KubeObject | None) -> None:
        self.received.append(event.label)

    @property
    def users(self) -> list[str] | None:
        claim = self.store.get("claim", "shop")
        return None if claim is None else [user.name for user in claim.status.reserved_for]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_what_was_written_is_read_and_wakes_those_who_wait_for_it_once(cluster):
    assert cluster.store.assume(a_claim(11, "web"))
    assert cluster.users == ["web"]
    cluster.store.changed(a_claim(11, "web"))
    assert cluster.received == ["resource.k8s.io/ResourceClaimUpdate"]


def test_indexes_know_it_too(cluster):
    index = cluster.store.indexed(lambda claim: [user.name for user in claim.status.reserved_for])
    cluster.store.assume(a_claim(11, "web"))
    assert [claim.name for claim in index.at("web")] == ["claim"]


def test_the_watch_does_not_bring_back_what_was_before(cluster):
    cluster.store.assume(a_claim(11, "web"))
    cluster.store.changed(a_claim(10))  # as it compares numbers, not texts: 9 < 11
    list_into(cluster.store, [a_claim(9)])
    assert cluster.users == ["web"]


def test_what_is_newer_counts(cluster):
    cluster.store.assume(a_claim(11, "web"))
    cluster.store.changed(a_claim(12, "web", "shop"))
    assert cluster.users == ["web", "shop"]
    cluster.store.changed(a_claim(11, "web"))  # nothing is assumed any more: the watch is right
    assert cluster.users == ["web"]


def test_a_response_that_the_watch_has_overtaken_is_ignored(cluster):
    cluster.store.changed(a_claim(12, "shop"))
    assert not cluster.store.assume(a_claim(11, "web"))
    assert cluster.users == ["shop"]


def test_what_is_gone_is_gone(cluster):
    cluster.store.assume(a_claim(11, "web"))
    cluster.store.deleted(a_claim(11, "web"))
    assert cluster.users is None
    assert not cluster.store.assume(a_claim(11, "web"))
    cluster.store.changed(a_claim(10, uid="u2"))
    assert cluster.users == []


def test_a_recreated_object_is_not_what_was_written(cluster):
    cluster.store.changed(a_claim(10, uid="u2"))
    assert not cluster.store.assume(a_claim(11, "web"))
