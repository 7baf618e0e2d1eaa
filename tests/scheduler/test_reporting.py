"""What is written about an attempt: only news, the newest word, and nothing after the binding."""

import asyncio
from typing import Any

import pytest

from mooring.base.clock import ManualClock
from mooring.base.errors import ApiError, OperatorMistake
from mooring.objects.core import PodCondition
from mooring.scheduler.reporting import Reporter
from mooring.testing import a_pod


class Server:
    """Stands where the client stands; holds every patch until the test lets it through."""

    def __init__(self) -> None:
        self.patches: list[dict[str, Any]] = []
        self.open = asyncio.Event()
        self.open.set()
        self.refusals: list[Exception] = []
        self.uid: str | None = None
        self.clock = ManualClock()

    async def patch(self, kind, name, namespace, body, *, subresource=None):
        await self.open.wait()
        if self.refusals:
            raise self.refusals.pop(0)
        assert body["metadata"] == {"uid": self.uid or body["metadata"]["uid"]}
        self.patches.append(body["status"])
        return {}


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


async def test_what_the_server_says_already_is_not_written(server, reporter):
    pod = a_pod()
    pod.status.conditions = [PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="no")]
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


async def test_a_final_refusal_is_logged_and_the_next_attempt_writes_anew(server, reporter, capsys):
    pod = a_pod("web")
    server.refusals = [ApiError(403, "Forbidden", "pods/status is forbidden")]
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    said = capsys.readouterr().err
    assert "default/web" in said
    assert "pods/status is forbidden" in said
    reporter.condition(pod, "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


async def test_a_word_is_about_this_very_pod(server, reporter):
    server.uid = "u1"
    reporter.condition(a_pod("web", uid="u1"), "Unschedulable", "no", None)
    await settle()
    assert len(server.patches) == 1


GONE = {
    "it is gone": ApiError(404, "NotFound", 'pods "web" not found'),
    "a namesake took its place": ApiError(409, "Conflict", "Precondition failed: UID in precondition: u1"),
    "a namesake, as kube-apiserver says it": ApiError(422, "Invalid", "metadata.uid: field is immutable"),
}


@pytest.mark.parametrize("answer", GONE.values(), ids=GONE.keys())
async def test_nothing_more_is_said_about_a_pod_when(server, reporter, capsys, answer):
    server.refusals = [answer]
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
        reporter.forget(pod.uid)
    assert (reporter._said, reporter._unsent, reporter._writers) == ({}, {}, {})


async def test_the_end_leaves_no_writer_behind(server, reporter):
    server.open.clear()
    reporter.condition(a_pod(), "Unschedulable", "no", None)
    await settle()
    [writer] = reporter._writers.values()
    await reporter.close(0.01)
    await settle()
    assert writer.cancelled()
    assert reporter._writers == {}
