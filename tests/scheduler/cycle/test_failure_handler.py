"""What becomes of a pod whose attempt failed."""

from __future__ import annotations

import pytest
from msgspec.structs import force_setattr
from tests.scheduler.world import World

from mooring.framework import Pod
from mooring.framework.verdicts import Code
from mooring.objects.core import PodCondition
from mooring.queue.queued_pod_info import Gating, QueuedPodInfo
from mooring.testing import a_pod


@pytest.fixture
async def world() -> World:
    return World()


async def test_a_refused_pod_goes_back_with_an_event_and_a_condition(world):
    """4.6: messages and conditions are kube-scheduler's."""
    waiting = world.popped(a_pod("web", uid="u1"))
    world.failures.unschedulable(waiting, "0/1 nodes are available: 1 Too many pods.", unschedulable={"Fit"})
    await world.settle()
    assert world.queue.where("u1") == "unschedulable"
    assert world.events == [("FailedScheduling", "web")]
    [body] = world.server.bodies
    assert body["metadata"] == {"uid": "u1", "resourceVersion": "1"}
    assert body["status"]["conditions"][0]["reason"] == "Unschedulable"


async def test_a_broken_attempt_is_tried_again_after_the_error_backoff(world, capsys):
    """Q26, 4.6: without a rejecting plugin the pod backs off as after an error; messages and conditions are kube-
    scheduler's.
    """
    waiting = world.popped(a_pod("web", uid="u1"))
    world.failures.error(waiting, "the disk is gone")
    await world.settle()
    assert world.queue.where("u1") == "backoff"
    assert world.server.bodies[0]["status"]["conditions"][0]["reason"] == "SchedulerError"
    assert '"Error scheduling pod; retrying"' in capsys.readouterr().err


async def test_what_changed_during_the_attempt_is_what_goes_back(world):
    """Q36: the next attempt sees the latest pod."""
    pod = a_pod("web")
    waiting = world.popped(pod)
    newer = a_pod("web", uid=pod.uid)
    force_setattr(newer.metadata, "resource_version", "2")
    world.pods.changed(newer)
    world.failures.error(waiting, "no")
    assert world.queue.find(pod.uid).pod is newer


GONE = {
    "deleted": (lambda world, pod: world.pods.deleted(pod), "Pod doesn't exist in informer cache"),
    "bound by another client": (
        lambda world, pod: world.pods.changed(a_pod("web", uid=pod.uid, node="node-1")),
        "Pod has been assigned to node. Abort adding it back to queue.",
    ),
}


@pytest.mark.parametrize(("happens", "words"), GONE.values(), ids=GONE.keys())
async def test_nothing_is_reported_about_a_pod_that_was_meanwhile(world, capsys, happens, words):
    """Q45, 4.5, 4.6: a deleted or bound pod is not nominated; a failed binding forgets the pod; messages
    and conditions are kube-scheduler's.
    """
    pod = a_pod("web")
    waiting = world.popped(pod)
    happens(world, pod)
    world.failures.error(waiting, "no")
    await world.settle()
    assert world.queue.where(pod) == "absent"
    assert not list(world.queue.in_flight())
    assert (world.events, world.server.requested) == ([], [])
    assert words in capsys.readouterr().err


async def test_nothing_is_reported_about_a_pod_recreated_meanwhile(world):
    """4.5: a failed binding forgets the pod."""
    first, second = a_pod("web"), a_pod("web")
    waiting = world.popped(first)
    world.pods.changed(second)
    world.failures.error(waiting, "no")
    await world.settle()
    assert (world.queue.where(first), world.queue.where(second)) == ("absent", "active")
    assert (world.events, world.server.requested) == ([], [])


NOMINATIONS = {
    "a plan's node is kept for it from now on": ("", "node-2", "node-2"),
    "where none is to be had, an earlier one is given up": ("node-1", "", None),
    "otherwise the node of its status holds": ("node-1", None, "node-1"),
    "and where its status names none, none": ("", None, None),
}


@pytest.mark.parametrize(("before", "decided", "after"), NOMINATIONS.values(), ids=NOMINATIONS.keys())
async def test_the_nomination_of_a_refused_pod(world, before, decided, after):
    """Q44, Q48, 4.8: a pod is nominated to one node at most; assuming ends the nomination, a failure restores it; what
    changes nominatedNodeName.
    """
    waiting = world.popped(a_pod("web", uid="u1", nominated=before))
    world.failures.unschedulable(waiting, "no", unschedulable={"Fit"}, nominate=decided)
    assert world.state.nominations.node_of("u1") == after
    await world.settle()
    [body] = world.server.bodies
    assert body["status"].get("nominatedNodeName", "untouched") == ("untouched" if decided is None else decided or None)


async def test_after_a_fault_the_nomination_is_gone(world):
    """4.8: what changes nominatedNodeName."""
    world.failures.error(world.popped(a_pod("web", uid="u1", nominated="node-1")), "no")
    assert world.state.nominations.node_of("u1") is None


async def test_a_pod_behind_a_gate_that_fails_with_other_words_each_time_is_reported_once(world):
    """Q11. The condition is a change of the pod, for which the gate may run again: it must not go round."""

    def failing(pod: Pod, words: str) -> QueuedPodInfo:
        return QueuedPodInfo(pod, 0.0, gating=Gating("Bad", Code.ERROR, (words,), is_failure=True))

    pod = a_pod("web", uid="u1")
    world.failures.pre_enqueue_failed(failing(pod, "no idea 1"))
    await world.settle()
    [body] = world.server.bodies
    [logged] = body["status"]["conditions"]
    assert (logged["reason"], logged["message"]) == ("SchedulerError", 'running PreEnqueue plugin "Bad": no idea 1')

    force_setattr(
        pod.status,
        "conditions",
        (PodCondition(type="PodScheduled", status="False", reason=logged["reason"], message=logged["message"]),),
    )
    world.reporter.pending(pod)
    world.failures.pre_enqueue_failed(failing(pod, "no idea 2"))
    await world.settle()
    assert len(world.server.bodies) == 1
    [series] = world.reporter.recorder._series.values()
    assert series.count == 2
