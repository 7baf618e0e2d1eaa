"""The informer: its cache, its handlers, and writes that are cached ahead of the watch."""

from __future__ import annotations

from typing import cast

import pytest
from tests.lists import list_into
from tests.simulated.builders import a_pod

from mooring.base.clock import SystemClock
from mooring.client import ApiClient, Connection
from mooring.client.informer import Informer
from mooring.simulated.records import PodRecord


def owned(name: str, version: str = "1", owner: str = "rs", **more) -> PodRecord:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner, "controller": True}
    return a_pod(name, owners=[reference], version=version, **more)


class NoServer:
    """Enough of a client for a watch that is never run."""

    clock = SystemClock()
    connection = Connection(server="https://none.invalid", source="the test")


@pytest.fixture
async def pods() -> Informer[PodRecord]:
    return Informer(cast(ApiClient, NoServer()), PodRecord)


def names(found: list[PodRecord]) -> list[str]:
    return sorted(pod.name for pod in found)


async def test_objects_are_found_by_key_and_by_owner(pods):
    list_into(pods, [owned("a"), owned("b"), owned("c", owner="other"), a_pod("free")])

    assert names(pods.owned_by("rs")) == ["a", "b"]
    assert pods.get("default/free") is not None


async def test_an_object_that_changes_hands_has_one_owner(pods):
    pods.changed(owned("a"))
    pods.changed(owned("a", version="2", owner="other"))

    assert pods.owned_by("rs") == []
    assert names(pods.owned_by("other")) == ["a"]


async def test_what_is_missing_from_a_new_list_is_gone(pods):
    gone: list[str] = []
    pods.subscribe(deleted=lambda pod: gone.append(pod.name))
    list_into(pods, [owned("a"), owned("b")])
    list_into(pods, [owned("b")])

    assert gone == ["a"]
    assert names(pods.owned_by("rs")) == ["b"]


async def test_a_recreated_object_replaces_one_whose_deletion_was_missed(pods):
    gone: list[str] = []
    pods.subscribe(deleted=lambda pod: gone.append(pod.uid))
    pods.changed(owned("a", uid="first"))
    pods.changed(owned("a", uid="second", version="2"))

    assert gone == ["first"]
    assert names(pods.owned_by("rs")) == ["a"]


async def test_what_we_have_just_made_counts_before_the_watch_brings_it(pods):
    pods.cache_write(owned("a"))
    assert names(pods.owned_by("rs")) == ["a"]


async def test_what_the_watch_already_took_away_does_not_come_back(pods):
    pods.changed(owned("a"))
    pods.deleted(owned("a"))
    pods.cache_write(owned("a"))

    assert pods.owned_by("rs") == []


async def test_a_late_watch_does_not_undo_what_we_know_better(pods):
    versions: list[str] = []
    pods.subscribe(changed=lambda pod: versions.append(pod.metadata.resource_version))
    pods.cache_write(owned("a", version="5"))
    pods.changed(owned("a", version="4"))
    pods.changed(owned("a", version="6"))

    assert versions == ["6"]


async def test_a_recreated_object_that_was_just_written_counts_before_the_watch_shows_the_deletion(pods):
    gone: list[str] = []
    pods.subscribe(deleted=lambda pod: gone.append(pod.uid))
    pods.changed(owned("a", uid="first"))
    pods.cache_write(owned("a", uid="second", version="3"))
    pods.deleted(owned("a", uid="first", version="2"))

    assert gone == ["first"]
    assert [pod.uid for pod in pods.owned_by("rs")] == ["second"]
