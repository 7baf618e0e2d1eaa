"""A plugin that writes to an object fails on that line, in the name of the plugin, for that attempt alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile

from mooring.framework import Cycle, Hint, NodeView, Plugin, Pod, Rejection
from mooring.framework.events import NODE, Action

HERE = Path(__file__).name

WRITES: dict[str, Callable[[Any], Any]] = {
    "a label": lambda pod: pod.labels.update(team="none"),
    "a default label": lambda pod: pod.labels.setdefault("team", "none"),
    "a label that goes": lambda pod: pod.labels.pop("app"),
    "the uid": lambda pod: setattr(pod.metadata, "uid", "another"),
    "the namespace": lambda pod: setattr(pod.metadata, "namespace", "another"),
    "the spec": lambda pod: setattr(pod, "spec", None),
    "an annotation": lambda pod: pod.annotations.update(team="none"),
    "a container": lambda pod: pod.spec.containers.clear(),
    "a request": lambda pod: pod.spec.containers[0].resources.requests.clear(),
    "what it requests": lambda pod: pod.requests.amounts.clear(),
}


def writing_at(point: str, write: Callable[[Any], Any]) -> type[Plugin]:
    def act(self: Plugin, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        write(pod)

    return type("Tidy", (Plugin,), {point: act, "reserve": act if point == "reserve" else lambda *_: None})


@pytest.mark.parametrize("point", ["filter", "reserve"])
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
async def test_a_write_costs_the_pod_its_attempt_and_no_other_pod_anything(server, capsys, point, write):
    config = a_configuration("- schedulerName: default-scheduler", a_profile("tidy", plugins=["Tidy"]))
    async with a_live_scheduler(server, config, [writing_at(point, write)]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="tidy", app="web")
        await live.refused("theirs")
        await live.pod("ours", app="web")
        assert await live.bound("ours") == ["node-1"]
    log = capsys.readouterr().err
    assert 'plugin \\"Tidy\\"' in log or 'running \\"Tidy\\"' in log
    assert f"{HERE}:" in log


class WritingHint(Plugin):
    """Rejects the pod until a node comes, whose hint writes."""

    name = "Tidy"

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("no") if node.name == "node-1" else None

    def events(self) -> list[Hint]:
        return [Hint(NODE, Action.ALL, self.may_help)]

    def may_help(self, pod: Pod, old: object, new: object) -> bool:
        pod.labels.setdefault("team", "none")  # type: ignore[attr-defined]
        return False


async def test_a_hint_that_writes_requeues_the_pod_and_is_logged_with_its_line(server, capsys):
    config = a_configuration("- schedulerName: default-scheduler", a_profile("tidy", plugins=["Tidy"]))
    async with a_live_scheduler(server, config, [WritingHint]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="tidy")
        await live.refused("theirs")
        await live.node("node-2")
        assert await live.bound("theirs") == ["node-2"]
    [line] = [each for each in capsys.readouterr().err.splitlines() if "Queueing hint failed" in each]
    assert 'plugin="Tidy"' in line
    assert "ReadOnlyError" in line
    assert f"{HERE}:" in line
