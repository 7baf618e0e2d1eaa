"""Pods of profiles that go and come: who is left, who is taken up, and who is no longer there to be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.watching.test_feeds import OURS, World

from mooring.objects import Pod
from mooring.testing import a_pod

THEIRS = "theirs"


def after(world: World, *schedulers: str) -> None:
    """These are the profiles now."""
    world.pods.retain_profiles(schedulers)
    world.pods.adopt_foreign_pods()


def a_foreigner(name: str = "web", **more: Any) -> Pod:
    return a_pod(name, scheduler=THEIRS, **more)


@pytest.fixture
def world() -> World:
    return World()


def test_a_pod_that_waited_for_another_scheduler_is_taken_up_when_we_become_it(world):
    world.pods.changed(pod := a_foreigner())
    assert world.where(pod) == "absent"
    after(world, OURS, THEIRS)
    assert world.where(pod) == "active"
    assert world.pods.latest(pod.uid) is pod


def test_one_that_is_gone_or_has_a_node_is_not(world):
    world.pods.changed(gone := a_foreigner("gone"))
    world.pods.changed(placed := a_foreigner("placed"))
    world.pods.deleted(gone)
    world.pods.changed(a_foreigner("placed", uid=placed.uid, node="node-1"))
    after(world, OURS, THEIRS)
    assert (world.where(gone), world.where(placed)) == ("absent", "absent")


def test_one_that_a_new_list_does_not_show_is_not(world):
    world.pods.changed(pod := a_foreigner())
    world.pods.listed({})
    after(world, OURS, THEIRS)
    assert world.where(pod) == "absent"


def test_the_newest_of_a_name_is_taken_up(world):
    world.pods.changed(old := a_foreigner(uid="1"))
    world.pods.changed(new := a_foreigner(uid="2"))
    after(world, OURS, THEIRS)
    assert (world.where(old), world.where(new)) == ("absent", "active")


def test_a_pod_of_a_profile_that_goes_is_left_and_its_changes_mean_nothing(world):
    after(world, OURS, THEIRS)
    world.pods.changed(pod := a_foreigner())
    after(world, OURS)
    assert world.where(pod) == "absent"
    assert world.pods.latest(pod.uid) is None
    world.pods.changed(a_foreigner(uid=pod.uid, labels={"x": "1"}))
    assert world.where(pod) == "absent"
    after(world, OURS, THEIRS)
    assert world.where(pod) == "active"


def test_one_that_is_on_its_way_to_a_node_is_followed_until_it_is_there(world):
    after(world, OURS, THEIRS)
    world.pods.changed(pod := a_foreigner())
    world.attempt(pod)
    after(world, OURS)
    assert world.pods.latest(pod.uid) is pod
    world.pods.changed(a_foreigner(uid=pod.uid, node="node-1"))
    assert world.pods.node_of(pod.uid) == "node-1"
    assert world.pods.latest(pod.uid) is None
