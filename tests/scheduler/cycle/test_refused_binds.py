"""A binding that the server refuses is counted, reported and retried; a pod bound by another scheduler stays."""

from __future__ import annotations

import re
from typing import Any

from tests.client.conftest import until
from tests.scheduler.conftest import PATIENCE_SECONDS, a_live_scheduler

from mooring.base.errors import ApiError
from mooring.client import ApiClient
from mooring.client.rights import Forbidden

REFUSALS = {
    "assigned": ApiError(409, "Conflict", 'pod assigned is already assigned to node "node-9"'),
    "terminating": ApiError(409, "Conflict", "pod terminating is being deleted, cannot be assigned to a host"),
    "gated": ApiError(409, "Conflict", "pod gated has non-empty .spec.schedulingGates"),
    "renewed": ApiError(409, "Conflict", "Precondition failed: UID in precondition: u1, UID in object meta: u2"),
    "gone": ApiError(404, "NotFound", 'pods "gone" not found'),
    "forbidden": Forbidden(
        403,
        "Forbidden",
        'pods "forbidden" is forbidden: User "u" cannot create resource "pods/binding" in API group "" in the namespace'
        ' "default"',
    ),
}


async def test_a_refused_binding_is_counted_reported_and_retried(server, monkeypatch):
    refusals = dict(REFUSALS)
    bind = ApiClient.bind

    async def refuse_once(self: ApiClient, namespace: str, name: str, uid: str, node: str, **metadata: Any) -> None:
        if (refusal := refusals.pop(name, None)) is not None:
            raise refusal
        await bind(self, namespace, name, uid, node, **metadata)

    monkeypatch.setattr(ApiClient, "bind", refuse_once)
    async with a_live_scheduler(server) as live:
        await live.node("node-1")
        for name in REFUSALS:
            await live.pod(name)
        await live.bound(*REFUSALS)
        for name, refusal in REFUSALS.items():
            failed, scheduled = await live.events(name)
            assert (failed["reason"], scheduled["reason"]) == ("FailedScheduling", "Scheduled")
            assert str(refusal) in failed["note"]
        assert 'verbs: ["create"]' in (await live.events("forbidden"))[0]["note"]
        assert attempts(live.scheduler, "error") == len(REFUSALS)
        assert attempts(live.scheduler, "scheduled") == len(REFUSALS)


async def test_a_pod_that_another_scheduler_has_bound_is_dropped_and_stays_as_it_is(server, monkeypatch):
    """The watch shows their binding before the response to ours, or our patch meets it: no more is written."""
    bind = ApiClient.bind

    async def be_late(self: ApiClient, namespace: str, name: str, uid: str, node: str, **metadata: Any) -> None:
        await bind(self, namespace, name, uid, "node-2", **metadata)
        await bind(self, namespace, name, uid, node, **metadata)

    monkeypatch.setattr(ApiClient, "bind", be_late)
    async with a_live_scheduler(server) as live:
        await live.node("node-1", cpu="8")
        await live.node("node-2", cpu="1")
        await live.pod("taken", cpu="2")
        assert await live.bound("taken") == ["node-2"]
        await until(lambda: attempts(live.scheduler, "error") == 1)
        await live.scheduler.reporter.flush(PATIENCE_SECONDS)
        pod = live.pods["taken"]
        condition = pod.condition("PodScheduled")
        assert condition is None or condition.status == "True"
        assert live.scheduler.queue.where(pod) == "absent"


def attempts(scheduler: Any, result: str) -> int:
    found = re.search(rf'^scheduler_schedule_attempts_total{{.*result="{result}".*}} (\S+)$', text(scheduler), re.M)
    return int(float(found[1])) if found else 0


def text(scheduler: Any) -> str:
    written: bytes = scheduler.metrics.text()
    return written.decode()
