"""The log lines that operators know from kube-scheduler, at kube-scheduler's verbosity."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator

import pytest
from tests.scheduler.churn import HurriedClock
from tests.scheduler.conftest import a_configuration, a_live_scheduler

from mooring.base import log
from mooring.objects import Node, Pod

WITHOUT_POST_FILTERS = "- plugins: {postFilter: {disabled: [{name: '*'}]}}"

LEVELS = {
    "Add event for node": 3,
    "Update event for node": 4,
    "Delete event for node": 3,
    "Add event for unscheduled pod": 3,
    "Update event for unscheduled pod": 4,
    "Delete event for unscheduled pod": 3,
    "Add event for scheduled pod": 3,
    "Delete event for scheduled pod": 3,
    "About to try and schedule pod": 4,
    "Attempting to schedule pod": 3,
    "Attempting to bind pod to node": 3,
    "Successfully bound pod to node": 2,
    "Unable to schedule pod; no fit; waiting": 2,
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": 2,
    "No PostFilter plugins are registered, so no preemption will be performed": 3,
    "Updating pod condition and nominated node name": 3,
}


@pytest.fixture
def lines_at() -> Iterator[Callable[[int], io.StringIO]]:
    def listen(verbosity: int) -> io.StringIO:
        stream = io.StringIO()
        log.configure(verbosity=verbosity, stream=stream)
        return stream

    before = (log._settings.verbosity, log._settings.stream)
    yield listen
    log._settings.verbosity, log._settings.stream = before


@pytest.mark.parametrize("verbosity", [1, 2, 3, 4])
async def test_lines_appear_from_their_level_on(server, lines_at, verbosity):
    stream = lines_at(verbosity)
    async with a_live_scheduler(server, a_configuration(WITHOUT_POST_FILTERS), clock=HurriedClock()) as live:
        await live.pod("early")
        await live.refused("early")
        await live.node("node-1", cpu="1")
        await live.bound("early")
        await live.pod("big", cpu="3")
        await live.refused("big")
        await live.client.patch(Node.KIND, "node-1", None, {"metadata": {"labels": {"a": "b"}}}, form="merge")
        await live.client.patch(Pod.KIND, "big", "default", {"metadata": {"labels": {"a": "b"}}}, form="merge")
        for name in ("early", "big"):
            await live.client.delete(Pod.KIND, name, "default", grace_seconds=0)
        await live.client.delete(Node.KIND, "node-1")
        await live.pod("late")
        await live.refused("late", containing="no nodes")
    logged = set(re.findall(r'\] "([^"]*)"', stream.getvalue()))
    assert logged & LEVELS.keys() == {line for line, level in LEVELS.items() if level <= verbosity}
    if verbosity >= 2:
        assert 'pod="default/early" node="node-1" evaluatedNodes=1 feasibleNodes=1' in stream.getvalue()
