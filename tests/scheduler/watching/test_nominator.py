"""Nominations: which pod holds a place on which node, from the watch and from decisions."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.scheduler.world import World

from mooring.framework import Pod
from mooring.testing import a_pod


@pytest.fixture
async def world() -> World:
    return World()


def a_version(number: int, *, nominated: str = "", node: str = "", priority: int = 5, name: str = "web") -> Pod:
    pod = a_pod(name, uid=f"uid-{name}", nominated=nominated, node=node, priority=priority, cpu=number)
    force_setattr(pod.metadata, "resource_version", str(number))
    return pod


def where(world: World, name: str = "web") -> str | None:
    return world.state.nominations.node_of(f"uid-{name}")


def test_a_pod_whose_status_names_a_node_holds_a_place_there(world):
    """Q4, Q44: the status of a pod nominates it; a pod is nominated to one node at most."""
    world.pods.changed(a_version(1, nominated="node-1"))
    assert where(world) == "node-1"
    [held] = world.state.nominations.at("node-1")
    assert (held.uid, held.priority, held.request("cpu")) == ("uid-web", 5, 1000)


UPDATES = {
    "added": ("", "node-1", "node-1"),
    "changed": ("node-1", "node-2", "node-2"),
    "removed": ("node-1", "", None),
    "left": ("node-1", "node-1", "node-1"),
}


@pytest.mark.parametrize(("before", "now", "held"), UPDATES.values(), ids=UPDATES.keys())
def test_the_watch_shows_that_the_nomination_was(world, before, now, held):
    """Q46: an update without a nominated node keeps our nomination."""
    world.pods.changed(a_version(1, nominated=before))
    world.pods.changed(a_version(2, nominated=now))
    assert where(world) == held
    if held:
        [record] = world.state.nominations.at(held)
        assert record.request("cpu") == 2000, "the place is as large as the newest pod"


async def test_an_update_that_names_no_node_leaves_what_we_decided(world):
    """Q46: an update without a nominated node keeps our nomination."""
    waiting = world.popped(a_version(1))
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"}, nominate="node-1")
    world.pods.changed(a_version(2))
    assert where(world) == "node-1"


async def test_the_watch_overrules_what_we_decided(world):
    """Q46: an update without a nominated node keeps our nomination."""
    waiting = world.popped(a_version(1, nominated="node-2"))
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"}, nominate="node-1")
    assert where(world) == "node-1"
    world.pods.changed(a_version(2, nominated="node-3"))
    assert where(world) == "node-3"


def test_a_pod_that_is_kept_out_of_the_queue_holds_no_place(world):
    """Q4: the status of a pod nominates it."""
    world.under_way.begin("uid-web", [])
    world.pods.changed(a_version(1, nominated="node-1"))
    assert where(world) is None


ENDS = {
    "deleted": lambda world: world.pods.deleted(a_version(1, nominated="node-1")),
    "bound": lambda world: world.pods.changed(a_version(2, nominated="node-1", node="node-1")),
    "assumed": lambda world: world.state.assume(a_version(1), "node-1", at=1.0),
    "missing from the next list": lambda world: world.pods.listed({}),
}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS.keys())
def test_the_place_is_given_up_when_the_pod_is(world, ends):
    """Q5, Q45, Q48: a deleted pod leaves its place; a deleted or bound pod is not nominated; assuming ends the
    nomination, a failure restores it.
    """
    world.pods.changed(a_version(1, nominated="node-1"))
    ends(world)
    assert where(world) is None


def test_a_nominated_pod_of_another_scheduler_holds_no_place(world):
    pod = a_version(1, nominated="node-1")
    force_setattr(pod.spec, "scheduler_name", "another-scheduler")
    world.pods.changed(pod)
    assert where(world) is None


def test_requests_that_cannot_be_read_hold_no_place_and_harm_no_other_pod(world, capsys):
    pod = a_version(1, nominated="node-1")
    force_setattr(pod.spec.containers[0].resources, "requests", {"cpu": "much"})
    world.pods.changed(pod)
    assert where(world) is None
    assert "Nominated pod is not counted" in capsys.readouterr().err


# Who is woken when a place becomes free

FREED = {
    "the nomination changes": lambda world: world.pods.changed(a_version(2, nominated="node-2")),
    "the nomination is removed": lambda world: world.pods.changed(a_version(2)),
    "the pod is deleted": lambda world: world.pods.deleted(a_version(1, nominated="node-1")),
}


def refuse(world: World, name: str, priority: int) -> None:
    waiting = world.popped(a_pod(name, uid=f"uid-{name}", priority=priority))
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"})


@pytest.mark.parametrize("freed", FREED.values(), ids=FREED.keys())
async def test_pods_of_the_same_or_lower_priority_are_woken_when(world, freed):
    """3.2: changed fields decide which events are raised."""
    nominated = world.popped(a_version(1, nominated="node-1"))
    world.failures.unschedulable(nominated, "no", unschedulable={"Fit"})
    for name, priority in (("lower", 4), ("equal", 5), ("higher", 6)):
        refuse(world, name, priority)
    freed(world)
    assert [world.queue.where(f"uid-{name}") for name in ("lower", "equal", "higher")] == [
        "backoff",
        "backoff",
        "unschedulable",
    ]


async def test_no_pod_is_requeued_when_a_nomination_is_only_added(world):
    """3.2: changed fields decide which events are raised."""
    world.failures.unschedulable(world.popped(a_version(1)), "no", unschedulable={"Fit"})
    refuse(world, "lower", 4)
    world.pods.changed(a_version(2, nominated="node-1"))
    assert world.queue.where("uid-lower") == "unschedulable"
