"""What is written about an attempt: only news, the newest word, and nothing after the binding."""

import asyncio
from typing import Any

import pytest
from msgspec.structs import force_setattr

from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError, OperatorMistake, Unreachable
from mooring.objects.core import Pod, PodCondition
from mooring.scheduler.cycle.reporting import BACKOFF, MOST_WRITERS, Reporter
from mooring.testing import a_pod


class Server:
    """Stands where the client stands; holds every patch until the test lets it through."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []
        self.begun: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        self.refusals: list[Exception] = []
        self.fails_every_patch_with: Exception | None = None
        self.poisoned = ""
        self.uid: str | None = None
        self.now: dict[str, Any] | None = None
        self.clock = ManualClock()

    async def patch(self, kind, name, namespace, body, *, subresource=None):
        self.begun.append(name)
        await self.open.wait()
        if self.fails_every_patch_with is not None:
            raise self.fails_every_patch_with
        if self.refusals:
            raise self.refusals.pop(0)
        if name == self.poisoned:
            raise ApiError(500, "InternalError", "a webhook dislikes it")
        metadata = body["metadata"]
        assert metadata["uid"] == (self.uid or metadata["uid"])
        if self.now is not None and metadata.get("resourceVersion") not in (
            None,
            self.now["metadata"]["resourceVersion"],
        ):
            raise ApiError(409, "Conflict", "the object has been modified")
        self.patches.append(body["status"])
        return {}

    async def get(self, kind, name, namespace):
        return self.now or {"metadata": {"resourceVersion": "1"}, "spec": {}}


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def reporter(server) -> Reporter:
    return Reporter(server, server.clock, ["default-scheduler"])


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_refusal_becomes_a_condition(server, reporter):
    reporter.condition(a_pod(), "Unschedulable", "0/1 nodes are available: 1 Too many pods.", None)
    await settle()
    [status] = server.patches
    [condition] = status["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "Unschedulable")
    assert condition["lastTransitionTime"] == "2023-11-14T22:13:20Z"
    assert "nominatedNodeName" not in status


async def test_the_same_word_is_not_written_twice_even_before_the_watch_shows_it(server, reporter):
    pod = a_pod()
    for _ in range(3):
        reporter.condition(pod, "Unschedulable", "no", None)
        await settle()
    assert len(server.patches) == 1


async def test_what_the_server_has_already_is_not_written(server, reporter):
    pod = a_pod()
    force_setattr(
        pod.status,
        "conditions",
        (PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no"),),
    )
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    assert server.patches == []


async def test_a_nomination_is_news(server, reporter):
    pod = a_pod()
    reporter.condition(pod, "Unschedulable", "no", "node-1")
    reporter.condition(pod, "Unschedulable", "no", "")
    await settle()
    assert server.patches[-1]["nominatedNodeName"] is None


async def test_only_the_newest_word_follows_one_that_is_on_its_way(server, reporter):
    pod = a_pod()
    server.open.clear()
    for word in ("first", "second", "third"):
        reporter.condition(pod, "Unschedulable", word, None)
        await settle()
    server.open.set()
    await settle()
    assert [status["conditions"][0]["message"] for status in server.patches] == ["first", "third"]


async def test_nothing_reaches_the_server_after_the_pod_is_bound(server, reporter):
    pod = a_pod()
    server.open.clear()
    reporter.condition(pod, "Unschedulable", "first", None)
    await settle()
    reporter.condition(pod, "Unschedulable", "second", None)
    binding = asyncio.create_task(reporter.settle(pod))
    await settle()
    assert not binding.done()
    server.open.set()
    await binding
    assert [status["conditions"][0]["message"] for status in server.patches] == ["first"]


@pytest.mark.parametrize("code", [409, 500, 503])
async def test_a_refusal_that_may_pass_is_tried_again(server, reporter, code):
    server.refusals = [ApiError(code, "Later", "later")]
    reporter.condition(a_pod(), "Unschedulable", "no", None)
    await settle()
    server.clock.advance(1)
    await settle()
    assert len(server.patches) == 1


async def test_a_final_refusal_is_logged_and_the_next_attempt_writes_again(server, reporter, capsys):
    pod = a_pod("web")
    server.refusals = [ApiError(422, "Invalid", "status is odd")]
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    logged = capsys.readouterr().err
    assert "default/web" in logged
    assert "status is odd" in logged
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


async def pass_time(server: Server, seconds: float) -> None:
    """In small steps, so that a task that wakes up can sleep again."""
    for _ in range(int(seconds * 4)):
        server.clock.advance(0.25)
        await settle()


TROUBLE = {
    "is not there": Unreachable("connection refused"),
    "starts and knows no rights yet": ApiError(403, "Forbidden", 'pods "web" is forbidden: RBAC: not yet synced'),
    "starts and knows no users yet": ApiError(401, "Unauthorized", "Unauthorized"),
    "breaks down": ApiError(500, "InternalError", "etcd is away"),
    "is not ready": ApiError(503, "ServiceUnavailable", "not ready"),
    "has no time": ApiError(429, "TooManyRequests", "later"),
    "finds the pod changed every time": ApiError(409, "Conflict", "the object has been modified"),
}


@pytest.mark.parametrize("response", TROUBLE.values(), ids=TROUBLE.keys())
async def test_a_word_is_kept_as_long_as_the_server(server, reporter, capsys, response):
    """4.6: nothing may happen to the pod for a long time; its reason must not be lost."""
    server.fails_every_patch_with = response
    reporter.condition(a_pod("web"), "Unschedulable", "no", None)
    await pass_time(server, 100)
    assert server.patches == []
    assert capsys.readouterr().err.count("Error updating pod") == 1
    server.fails_every_patch_with = None
    await pass_time(server, BACKOFF.limit_seconds + 1)
    assert [status["conditions"][0]["message"] for status in server.patches] == ["no"]
    await pass_time(server, 100)
    assert len(server.patches) == 1


async def test_a_newer_word_replaces_one_that_was_not_taken(server, reporter):
    pod = a_pod("web")
    server.refusals = [ApiError(403, "Forbidden", "not yet")]
    reporter.condition(pod, "Unschedulable", "old", None)
    await settle()
    reporter.condition(pod, "Unschedulable", "new", None)
    await pass_time(server, 10)
    assert [status["conditions"][0]["message"] for status in server.patches] == ["new"]


async def test_the_same_word_again_does_not_make_two_of_one_that_was_not_taken(server, reporter):
    pod = a_pod("web")
    server.refusals = [ApiError(403, "Forbidden", "not yet")]
    for _ in range(2):
        reporter.condition(pod, "Unschedulable", "no", None)
        await settle()
    await pass_time(server, 10)
    assert len(server.patches) == 1


@pytest.mark.parametrize("when", ["on its way", "kept"])
async def test_a_failed_patch_is_not_retried_for_a_pod_that_waits_no_longer(server, reporter, when):
    server.refusals = [ApiError(403, "Forbidden", "not yet")]
    if when == "on its way":
        server.open.clear()
    reporter.condition(a_pod("web", uid="u1"), "Unschedulable", "no", None)
    await settle()
    reporter.not_pending(a_pod("web", uid="u1"))
    server.open.set()
    await pass_time(server, 10)
    assert server.patches == []
    assert reporter._retrier is None


async def test_a_failed_patch_is_not_retried_after_the_binding_and_is_new_if_that_fails(server, reporter):
    pod = a_pod("web")
    server.refusals = [ApiError(403, "Forbidden", "not yet")]
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    await reporter.settle(pod)
    await pass_time(server, 10)
    assert server.patches == []
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


async def test_a_condition_that_was_overtaken_by_the_binding_is_new_if_that_fails(server, reporter):
    pod = a_pod("web")
    server.open.clear()
    reporter.condition(pod, "SchedulerError", "first", None)
    await settle()
    reporter.condition(pod, "SchedulerError", "second", None)
    binding = asyncio.create_task(reporter.settle(pod))
    await settle()
    server.open.set()
    await binding
    reporter.condition(pod, "SchedulerError", "second", None)
    await settle()
    assert [status["conditions"][0]["message"] for status in server.patches] == ["first", "second"]


async def test_one_patch_that_always_fails_does_not_hold_up_the_others(server, reporter):
    server.fails_every_patch_with = Unreachable("connection refused")
    for name in ("bad", "good", "better"):
        reporter.condition(a_pod(name, uid=name), "Unschedulable", name, None)
    await pass_time(server, 2)
    server.fails_every_patch_with, server.poisoned = None, "bad"
    await pass_time(server, 2 * BACKOFF.limit_seconds)
    assert sorted(status["conditions"][0]["message"] for status in server.patches) == ["better", "good"]


async def test_a_failed_patch_that_the_watch_shows_as_written_is_not_retried(server, reporter):
    pod = a_pod("web")
    server.fails_every_patch_with = Unreachable("the connection was cut before the response came")
    reporter.condition(pod, "Unschedulable", "no", None)
    await pass_time(server, 1)
    reporter.pending(shown(pod, "no", ""))
    server.fails_every_patch_with = None
    await pass_time(server, 10)
    assert server.patches == []


async def test_a_patch_is_about_this_very_pod(server, reporter):
    server.uid = "u1"
    reporter.condition(a_pod("web", uid="u1"), "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


async def test_a_pod_that_changed_meanwhile_is_patched_all_the_same(server, reporter):
    server.now = {"metadata": {"resourceVersion": "7"}, "spec": {}}
    reporter.condition(a_pod("web"), "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


async def test_a_pod_that_another_scheduler_bound_meanwhile_gets_no_condition(server, reporter, capsys):
    server.now = {"metadata": {"resourceVersion": "7"}, "spec": {"nodeName": "theirs"}}
    reporter.condition(a_pod("web"), "SchedulerError", "binding rejected", "")
    await settle()
    assert (server.patches, capsys.readouterr().err) == ([], "")


GONE = {
    "it is gone": ApiError(404, "NotFound", 'pods "web" not found'),
    "it was recreated": ApiError(409, "Conflict", "Precondition failed: UID in precondition: u1"),
    "it was recreated, as kube-apiserver reports it": ApiError(422, "Invalid", "metadata.uid: field is immutable"),
}


@pytest.mark.parametrize("response", GONE.values(), ids=GONE.keys())
async def test_nothing_more_is_written_about_a_pod_when(server, reporter, capsys, response):
    server.refusals = [response]
    reporter.condition(a_pod("web"), "Unschedulable", "no", None)
    await settle()
    server.clock.advance(10)
    await settle()
    assert (server.patches, capsys.readouterr().err) == ([], "")


async def test_whatever_goes_wrong_with_a_word_does_not_keep_the_pod_from_being_bound(server, reporter, capsys):
    pod = a_pod("web")
    server.open.clear()
    server.refusals = [OperatorMistake("the token file is gone")]
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    server.open.set()
    await reporter.settle(pod)
    assert "the token file is gone" in capsys.readouterr().err


async def test_nothing_is_remembered_of_a_pod_that_waits_no_longer(server, reporter):
    pods = [a_pod(f"pod-{number}") for number in range(3)]
    for pod in pods:
        reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    reporter.scheduled(pods[0], "node-1")
    for pod in pods[1:]:
        reporter.not_pending(pod)
    assert (reporter._written, reporter._unsent, reporter._writers) == ({}, {}, {})


async def test_many_patches_leave_room_for_bindings(server, reporter):
    pods = [a_pod(f"pod-{number}") for number in range(MOST_WRITERS + 5)]
    server.open.clear()
    for pod in pods:
        reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    assert server.begun == [pod.name for pod in pods[:MOST_WRITERS]]

    await reporter.settle(pods[-1])  # it is about to be bound: its patch is dropped, and waits for no other
    server.open.set()
    await settle()
    assert server.begun == [pod.name for pod in pods[:-1]]


async def test_a_flush_sends_all_patches(server, reporter):
    pods = [a_pod(f"pod-{number}") for number in range(3 * MOST_WRITERS)]
    for pod in pods:
        reporter.condition(pod, "Unschedulable", "no", None)
    await reporter.flush(60.0)
    assert len(server.patches) == len(pods)


async def test_the_end_leaves_no_writer_behind(server, reporter):
    server.refusals = [ApiError(403, "Forbidden", "not yet")]
    reporter.condition(a_pod("kept"), "Unschedulable", "no", None)
    await settle()
    repeater = reporter._retrier
    assert repeater is not None
    server.open.clear()
    reporter.condition(a_pod("on-its-way"), "Unschedulable", "no", None)
    await settle()
    [writer] = reporter._writers.values()
    await reporter.close(0.01)
    await settle()
    assert (writer.cancelled(), repeater.cancelled()) == (True, True)
    assert (reporter._writers, reporter._retrier) == ({}, None)


def shown(pod: Pod, message: str, nominated: str) -> Pod:
    """The pod as the watch shows it."""
    newer = a_pod(pod.name, uid=pod.uid, nominated=nominated)
    force_setattr(
        newer.status,
        "conditions",
        (PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message=message),),
    )
    return newer


async def test_what_another_client_took_back_is_patched_again_once_the_watch_had_shown_it(server, reporter):
    pod = a_pod()
    reporter.condition(pod, "Unschedulable", "no", "node-1")
    await settle()
    reporter.pending(shown(pod, "no", "node-1"))
    taken_back = shown(pod, "no", "")
    reporter.pending(taken_back)
    reporter.condition(taken_back, "Unschedulable", "no", "node-1")
    await settle()
    assert [patch["nominatedNodeName"] for patch in server.patches] == ["node-1", "node-1"]


async def test_a_watch_that_is_late_does_not_make_us_repeat_ourselves(server, reporter):
    pod = a_pod()
    reporter.condition(pod, "Unschedulable", "no", "node-1")
    await settle()
    late = shown(pod, "another", "")
    reporter.pending(late)
    reporter.condition(late, "Unschedulable", "no", "node-1")
    await settle()
    assert len(server.patches) == 1


async def test_a_pod_is_nominated_before_it_waits_and_that_is_taken_back_if_it_is_refused(server, reporter):
    pod = shown(a_pod(), "no", "")
    await reporter.nominate(pod, "node-1")
    # The watch has not shown the nomination yet, and the words are those of before.
    reporter.condition(pod, "Unschedulable", "no", "")
    await settle()
    assert [patch["nominatedNodeName"] for patch in server.patches] == ["node-1", None]


async def test_a_pod_that_was_outbid_loses_its_nomination_and_may_be_nominated_again(server, reporter):
    pod = shown(a_pod(), "no", "node-1")
    assert await reporter.clear_nomination(pod)
    reporter.condition(pod, "Unschedulable", "no", "node-1")
    await settle()
    assert [patch["nominatedNodeName"] for patch in server.patches] == [None, "node-1"]


async def test_a_pod_that_goes_where_it_is_nominated_to_is_not_patched_again(server, reporter):
    """4.4.2: the node is nominated while the pod waits."""
    await reporter.nominate(shown(a_pod("shown"), "no", "node-1"), "node-1")
    assert server.patches == []

    pod = shown(a_pod("not-shown-yet"), "no", "")
    reporter.condition(pod, "Unschedulable", "no", "node-1")
    await settle()
    await reporter.nominate(pod, "node-1")
    assert len(server.patches) == 1

    await reporter.nominate(pod, "node-2")
    assert server.patches[-1] == {"nominatedNodeName": "node-2"}
