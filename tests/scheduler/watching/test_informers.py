"""Kinds that plugins read: one store and one watch each, events for waiting pods, a report when one is missing."""

from __future__ import annotations

import asyncio

import pytest
from tests.lists import list_into

from mooring.base.clock import ManualClock
from mooring.client import ApiClient, Connection
from mooring.framework import CustomResource
from mooring.framework.events import ClusterEvent
from mooring.objects import KubeObject, ObjectMeta
from mooring.scheduler.watching.informers import Informers, ObjectStore


class Quota(CustomResource, group="example.com", version="v1", plural="quotas", scope="Namespaced"):
    pass


class Rack(CustomResource, group="example.com", version="v1", plural="racks", scope="Cluster"):
    pass


class PodLabels(KubeObject, version="v1", plural="pods", kind="Pod"):
    """A plugin's own view of pods."""


def a_quota(name: str, version: str = "1", namespace: str = "shop") -> Quota:
    return Quota(metadata=ObjectMeta(name=name, namespace=namespace, resource_version=version))


class Listener:
    def __init__(self) -> None:
        self.received: list[str] = []
        self.synced = 0
        self.store = ObjectStore(Quota, self.publish, self.on_synced)

    def publish(self, event: ClusterEvent, old: KubeObject | None, new: KubeObject | None) -> None:
        about = new or old
        assert about is not None
        self.received.append(f"{event.label} {about.metadata.name}")

    def on_synced(self) -> None:
        self.synced += 1


@pytest.fixture
def listener() -> Listener:
    return Listener()


def test_what_was_listed_can_be_read(listener):
    assert not listener.store.synced
    list_into(listener.store, [a_quota("red"), a_quota("red", namespace="farm")])
    assert listener.store.synced
    assert listener.store.get("red", "shop").metadata.namespace == "shop"
    assert listener.store.get("blue", "shop") is None
    assert len(list(listener.store.all())) == 2
    assert listener.synced == 1


def test_each_change_is_an_event_of_the_kind(listener):
    quota = a_quota("red")
    listener.store.changed(quota)
    listener.store.changed(a_quota("red", "2"))
    listener.store.deleted(a_quota("red", "3"))
    kind = "quotas.v1.example.com"
    assert listener.received == [f"{kind}Add red", f"{kind}Update red", f"{kind}Delete red"]
    assert list(listener.store.all()) == []


def test_an_update_without_a_change_is_no_event(listener):
    listener.store.changed(a_quota("red"))
    listener.store.changed(a_quota("red"))
    listener.store.deleted(a_quota("unknown"))
    assert len(listener.received) == 1


def test_a_plugins_own_view_of_pods_repeats_no_event_of_pods(listener):
    store = ObjectStore(PodLabels, listener.publish, listener.on_synced)
    store.changed(PodLabels(metadata=ObjectMeta(name="web", namespace="shop", resource_version="1")))
    assert store.get("web", "shop") is not None
    assert not listener.received


def test_a_list_brings_and_takes(listener):
    list_into(listener.store, [a_quota("stays"), a_quota("goes")])
    listener.received.clear()
    list_into(listener.store, [a_quota("stays"), a_quota("comes")])
    assert [received.rpartition(".com")[2] for received in listener.received] == ["Add comes", "Delete goes"]
    assert listener.synced == 2


def test_who_reads_all_may_be_interrupted_by_a_change(listener):
    list_into(listener.store, [a_quota("red"), a_quota("blue")])
    for quota in listener.store.all():
        listener.store.deleted(quota)
    assert list(listener.store.all()) == []


@pytest.fixture
async def informers() -> Informers:
    connection = Connection(server="https://127.0.0.1:1", source="the test")
    return Informers(ApiClient(connection, clock=ManualClock()), lambda *_: None, lambda _: None)


async def test_a_kind_that_two_plugins_read_is_watched_once(informers):
    assert informers.store(Quota) is informers.store(Quota)
    assert len(informers._reflectors) == 1


async def test_a_kind_that_was_not_listed_is_missing_with_a_reason(informers):
    informers.store(Quota)
    informers.store(Rack)
    informers._reflectors[Rack].problem = "the server has no racks.example.com (v1)"
    assert informers.missing([Quota, Rack]) == [
        (Quota, "the first list of quotas.example.com has not come yet"),
        (Rack, "the server has no racks.example.com (v1)"),
    ]
    informers._reflectors[Quota].is_listed = True
    assert [kind for kind, _ in informers.missing([Quota, Rack])] == [Rack]


async def test_the_start_waits_only_so_long_for_a_kind(informers):
    informers.store(Quota)
    reflector = informers._reflectors[Quota]
    await informers.settled(0.01)
    assert not reflector.settled.is_set()

    reflector.settled.set()
    async with asyncio.timeout(30):  # much less than it was given
        await informers.settled(3600)
    assert informers.missing([Quota])
