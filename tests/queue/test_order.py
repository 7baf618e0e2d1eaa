"""Lines keep their members whatever happens to the order."""

import pytest
from tests.queue.builders import a_pod, a_queue, fail, names, wait

from mooring.base.clock import ManualClock
from mooring.base.log import Log
from mooring.framework.events import NODE_ADDED
from mooring.queue import QueuedPodInfo
from mooring.queue.heap import PodHeap


def test_a_sort_key_that_raises_puts_its_pod_last(capsys):
    def sort_key(queued):
        return -int(queued.pod.labels["rank"])

    queue = a_queue(sort_key=sort_key)
    queue.add(a_pod("nameless"))
    queue.add(a_pod("one", labels={"rank": "1"}))
    queue.add(a_pod("two", labels={"rank": "2"}))
    assert names([queue.pop() for _ in range(4)]) == ["two", "one", "nameless", None]
    logged = capsys.readouterr().err
    assert 'sort_key failed; the pod is sorted behind all others" plugin="sort_key" pod="shop/nameless"' in logged


def test_sort_keys_that_cannot_be_compared_lose_no_pod(capsys):
    queue = a_queue(sort_key=lambda queued: queued.pod.labels.get("rank") or 7)
    for number in range(9):
        queue.add(a_pod(f"pod-{number}", labels={"rank": "x"} if number % 2 else {}))
    assert names([queue.pop() for _ in range(10)]) == [*(f"pod-{number}" for number in range(9)), None]
    assert "Sort keys cannot be compared" in capsys.readouterr().err


def test_sort_keys_that_cannot_be_compared_do_not_mix_windows():
    queue = a_queue(clock := ManualClock(start=1000.0), sort_key=lambda queued: queued.pod.labels.get("rank") or 7)
    for number in range(4):
        queue.add(a_pod(f"pod-{number}", labels={"rank": "x"} if number % 2 else {}))
        fail(queue, refused_by="Headroom")
        clock.advance(0.5)
    queue.on_event(NODE_ADDED)  # at 1002.0, when the first two have waited long enough
    assert queue.counts() == {"active": 2, "backoff": 2, "unschedulable": 0, "gated": 0}
    wait(queue, clock, 1)
    assert queue.counts()["active"] == 4


class Fickle:
    """A sort key whose comparisons raise from some moment on."""

    is_broken = False

    def __lt__(self, other: object) -> bool:
        if self.is_broken:
            raise GeneratorExit
        return False


MOMENTS = {
    "comes": lambda heap: heap.push(QueuedPodInfo(a_pod("another"), timestamp=0.0), (Fickle(),)),
    "has gone": lambda heap: heap.remove("pod-0"),
    "has come and gone often": lambda heap: heap._rebuild(),
}


@pytest.mark.parametrize("happens", MOMENTS.values(), ids=MOMENTS.keys())
def test_keys_whose_comparison_raises_what_is_no_exception_lose_no_pod_when_one(happens, monkeypatch, capsys):
    heap = PodHeap(Log("test"))
    for number in range(4):
        heap.push(QueuedPodInfo(a_pod(f"pod-{number}", uid=f"pod-{number}"), timestamp=0.0), (Fickle(),))
    monkeypatch.setattr(Fickle, "is_broken", True)
    happens(heap)
    expected = len(heap)
    taken = names([heap.pop() for _ in range(6)])
    assert len([name for name in taken if name is not None]) == expected
    assert "Sort keys cannot be compared" in capsys.readouterr().err


@pytest.mark.parametrize("times", [3, 1000])
def test_turns_that_were_taken_back_leave_no_trace(times):
    line = PodHeap(Log("test"))
    pods = [QueuedPodInfo(a_pod(f"pod-{number}"), timestamp=0.0) for number in range(3)]
    for turn in range(times):
        for number, waiting in enumerate(pods):
            line.push(waiting, (times - turn, number))
    assert len(line) == 3
    assert len(line._heap) < 100
    assert names([line.pop() for _ in range(4)]) == ["pod-0", "pod-1", "pod-2", None]
