"""The worked plugins: their own tests pass, and each does its work in a live scheduler with the configuration there."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from tests.examples.conftest import EXAMPLES
from tests.scheduler.conftest import Live, a_live_scheduler

from mooring.base.clock import ManualClock
from mooring.objects import Pod

FOLDER = EXAMPLES / "plugins"
CONFIG = (FOLDER / "scheduler.yaml").read_text(encoding="utf-8")
PAIR = {"example.com/gang": "pair", "example.com/gang-size": "2"}


async def create(
    live: Live, name: str, *, cpu: str = "1", labels: dict[str, str] | None = None, deadline: str | None = None
) -> None:
    metadata: dict[str, Any] = {"name": name, "labels": labels or {}}
    if deadline is not None:
        metadata["annotations"] = {"example.com/deadline": deadline}
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    await live.client.create(Pod.KIND, {"metadata": metadata, "spec": {"containers": [container]}}, "default")


@pytest.mark.parametrize("command", [["-m", "mooring", "plugin", "test"], ["-m", "pytest", "-q", "-c", "/dev/null"]])
def test_their_own_tests_pass(command):
    if "pytest" in command:
        command = [*command, "-p", "mooring.testing.pytest_plugin", "-p", "no:cacheprovider", "-p", "no:randomly"]
    done = subprocess.run([sys.executable, *command, str(FOLDER)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "16 passed" in done.stdout


async def test_a_gang_is_bound_when_its_last_member_comes(server):
    async with a_live_scheduler(server, CONFIG, [str(FOLDER)]) as live:
        await live.node("node-1")
        await create(live, "one", labels=PAIR)
        assert "1 of 2 pods of gang pair are there" in await live.refused("one")
        await create(live, "two", labels=PAIR)
        assert await live.bound("one", "two") == ["node-1", "node-1"]


async def test_a_gang_whose_last_member_finds_no_place_in_time_gives_up(server):
    clock = ManualClock()
    async with a_live_scheduler(server, CONFIG, [str(FOLDER)], clock=clock) as live:
        await live.node("node-1", cpu="1")
        await create(live, "one", labels=PAIR)
        await live.refused("one", containing="1 of 2 pods")
        await create(live, "two", labels=PAIR)
        await live.refused("one", containing="Insufficient cpu")
        clock.advance(31)
        await live.refused("two", containing="rejected due to timeout after waiting 30s at plugin Gang")


async def test_the_earliest_deadline_is_tried_first(server):
    async with a_live_scheduler(server, CONFIG, [str(FOLDER)]) as live:
        # No node: all of them wait in the queue until there is room for one.
        for name, deadline in (("none", None), ("late", "2026-11-16T19:00:00Z"), ("early", "2026-11-16T18:00:00Z")):
            await create(live, name, deadline=deadline)
            await live.refused(name)
        await live.node("node-1", cpu="1")
        assert await live.bound("early") == ["node-1"]
        await live.refused("late", containing="Insufficient cpu")
        await live.refused("none", containing="Insufficient cpu")


async def test_expendable_pods_make_room(server):
    async with a_live_scheduler(server, CONFIG, [str(FOLDER)]) as live:
        await live.node("node-1", cpu="2")
        await create(live, "filler", labels={"example.com/expendable": ""})
        await create(live, "important")
        await live.bound("filler", "important")
        await create(live, "next")
        await live.until(lambda: "filler" not in live.pods or live.pods["filler"].is_terminating)
        await live.client.delete(Pod.KIND, "filler", "default", grace_seconds=0)
        assert await live.bound("next") == ["node-1"]
        assert live.pods["important"].spec.node_name == "node-1"


async def test_paced_pods_are_bound_in_turn_and_hold_up_no_others(server):
    clock = ManualClock()
    async with a_live_scheduler(server, CONFIG, [str(FOLDER)], clock=clock) as live:
        await live.node("node-1")
        await create(live, "first", labels={"example.com/paced": ""})
        await live.bound("first")
        await create(live, "second", labels={"example.com/paced": ""})
        await create(live, "other")
        await live.bound("other")
        assert not live.pods["second"].spec.node_name
        clock.advance(2)
        assert await live.bound("second") == ["node-1"]
