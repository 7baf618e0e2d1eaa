"""Members of pod groups in the queue: failed ones wait for the end of their backoff, also in an idle scheduler."""

from tests.queue.builders import a_queue, fail, popped

from mooring.base.clock import ManualClock
from mooring.framework.events import NODE_ADDED
from mooring.queue import SchedulingQueue
from mooring.testing import a_pod

WORKER = a_pod("worker", group="gang")


def a_queue_with_a_failed_member(clock: ManualClock) -> SchedulingQueue:
    queue = a_queue(clock, has_pod_groups=True)
    queue.add(WORKER)
    fail(queue, refused_by="GangScheduling")
    return queue


def test_an_idle_queue_does_not_pop_a_failed_member_before_its_backoff_ends():
    queue = a_queue_with_a_failed_member(clock := ManualClock())
    assert queue.where(WORKER.uid) == "backoff"
    assert queue.pop() is None

    clock.advance(seconds=2)
    assert popped(queue).pod is WORKER


def test_an_event_does_not_shorten_the_backoff_of_a_member():
    queue = a_queue_with_a_failed_member(ManualClock())
    queue.on_event(NODE_ADDED)
    assert queue.pop() is None


def test_a_member_is_popped_with_its_group_whatever_its_backoff():
    queue = a_queue_with_a_failed_member(ManualClock())
    queued = queue.pop_member(WORKER.uid)
    assert queued is not None
    assert queued.attempts == 2
