"""Annotations and labels that are written with a pod's binding."""

from __future__ import annotations

import pytest
from tests.scheduler.conftest import a_configuration, a_live_scheduler, a_profile

from mooring.base.clock import ManualClock
from mooring.client import ApiClient
from mooring.framework import Allow, Binder, Bound, Cycle, NodeView, Plugin, Pod, Refusal, Rejection, Skip
from mooring.framework.pod_metadata import MOST_ANNOTATION_BYTES

DEVICE = "example.com/device"


class Devices(Plugin):
    """Writes which device a pod has, at the point that its label names."""

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        self._write("filter", pod, cycle)
        return None

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._write("reserve", pod, cycle)

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Allow:
        self._write("permit", pod, cycle)
        return Allow()

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._write("pre_bind", pod, cycle)

    async def post_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        self._write("post_bind", pod, cycle)

    def _write(self, point: str, pod: Pod, cycle: Cycle) -> None:
        if pod.labels.get("at") == point:
            device = pod.labels.get("device", "gpu-0")
            cycle.add_to_binding(self, annotations={DEVICE: device}, labels={"written-in": point})


class Racks(Plugin):
    """Writes the rack of the node, and by request also a device."""

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        cycle.add_to_binding(self, annotations={"example.com/rack": node.labels.get("rack", "")})
        if pod.labels.get("racks") == "quarrels":
            cycle.add_to_binding(self, annotations={DEVICE: "none"})
        return None


BOTH = a_configuration(a_profile("default-scheduler", plugins=["Devices", "Racks"]))


@pytest.mark.parametrize("point", ["reserve", "permit", "pre_bind"])
async def test_what_plugins_add_is_on_the_pod_when_it_is_bound(server, point):
    async with a_live_scheduler(server, BOTH, [Devices, Racks]) as live:
        await live.node("node-1", labels={"rack": "r1"})
        await live.pod("web", at=point)
        await live.bound("web")
        # By the write that bound it: the first version that has a node.
        assert live.pods["web"].annotations == {DEVICE: "gpu-0", "example.com/rack": "r1"}
        assert live.pods["web"].labels == {"at": point, "written-in": point}


async def test_annotations_and_labels_that_the_pod_has_stay(server):
    async with a_live_scheduler(server, BOTH, [Devices, Racks]) as live:
        metadata = {"name": "web", "annotations": {"mine": "1", DEVICE: "old"}, "labels": {"at": "reserve"}}
        await live.client.create(
            Pod.KIND, {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}, "default"
        )
        await live.node("node-1")
        await live.bound("web")
        assert live.pods["web"].annotations == {"mine": "1", DEVICE: "gpu-0", "example.com/rack": ""}


WRONG = {
    "before a node is chosen": (
        {"at": "filter"},
        'running "Devices" filter plugin: the binding was added to in filter; do so in reserve, permit or pre_bind',
    ),
    "another value for a key of another plugin": (
        {"at": "reserve", "racks": "quarrels"},
        'running Reserve plugin "Racks": annotation "example.com/device": plugin Devices has set it to "gpu-0", '
        'Racks to "none"',
    ),
}


@pytest.mark.parametrize(("labels", "message"), WRONG.values(), ids=WRONG.keys())
async def test_what_cannot_be_added_fails_the_attempt_and_names_the_plugin(server, labels, message):
    async with a_live_scheduler(server, BOTH, [Devices, Racks], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("web", **labels)
        assert await live.refused("web") == message
        assert live.pods["web"].annotations == {}


async def test_after_the_binding_it_is_too_late_and_that_is_logged(server, capsys):
    async with a_live_scheduler(server, BOTH, [Devices, Racks]) as live:
        await live.node("node-1")
        await live.pod("web", at="post_bind")
        await live.bound("web")
    assert "the binding was added to in bind, or after it" in capsys.readouterr().err


class Fickle(Plugin):
    """Refuses a pod once, after it has added to its binding."""

    refused: list[str] = []

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        if pod.name not in self.refused:
            cycle.add_to_binding(self, annotations={"example.com/attempt": "first"})

    def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> Refusal | None:
        if pod.name in self.refused:
            return None
        self.refused.append(pod.name)
        return Refusal("not yet")


async def test_what_an_attempt_that_failed_added_is_forgotten(server):
    Fickle.refused.clear()
    config = a_configuration(a_profile("default-scheduler", plugins=["Fickle"]))
    async with a_live_scheduler(server, config, [Fickle]) as live:
        await live.node("node-1")
        await live.pod("web")
        await live.refused("web", containing="not yet")
        await live.node("node-2")
        await live.bound("web")
        assert live.pods["web"].annotations == {}


class OwnBinder(Plugin):
    """Binds with annotations of its own; or by means of its own."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound | Skip:
        match pod.labels.get("bind"):
            case "mine":
                own = {"example.com/by": "OwnBinder", DEVICE: "gpu-7"}
                await self._binder.bind(pod, node.name, annotations=own, labels={"fast": "yes"})
                return Bound()
            case "malformed":
                await self._binder.bind(pod, node.name, annotations={"not a key": "x"})
                return Bound()
            case "large":
                await self._binder.bind(pod, node.name, annotations={"large": "x" * MOST_ANNOTATION_BYTES})
                return Bound()
            case "elsewhere":
                assert STANDS_FOR_OTHER_MEANS is not None
                await STANDS_FOR_OTHER_MEANS.bind(pod.namespace, pod.name, pod.uid, node.name)
                return Bound()
        return Skip()


STANDS_FOR_OTHER_MEANS: ApiClient | None = None
OWN_BINDER = """
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Devices}]}
    bind: {enabled: [{name: OwnBinder}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
"""


async def test_a_bind_plugin_adds_its_own_and_its_value_counts(server):
    async with a_live_scheduler(server, a_configuration(OWN_BINDER), [Devices, OwnBinder]) as live:
        await live.node("node-1")
        await live.pod("web", bind="mine", at="reserve")
        await live.bound("web")
        assert live.pods["web"].annotations == {"example.com/by": "OwnBinder", DEVICE: "gpu-7"}
        assert live.pods["web"].labels == {"bind": "mine", "at": "reserve", "written-in": "reserve", "fast": "yes"}


REFUSED = {
    "malformed": 'running Bind plugin "OwnBinder": annotation "not a key": name part must consist of',
    "large": 'running Bind plugin "OwnBinder": the pod would have 262149 bytes of annotations; 262144 are allowed',
}


@pytest.mark.parametrize(("bind", "message"), REFUSED.items())
async def test_a_binding_that_would_spoil_the_pod_is_not_sent(server, bind, message):
    async with a_live_scheduler(server, a_configuration(OWN_BINDER), [Devices, OwnBinder], clock=ManualClock()) as live:
        await live.node("node-1")
        await live.pod("web", bind=bind)
        assert (await live.refused("web")).startswith(message)


async def test_a_bind_plugin_that_loses_what_others_added_is_named_in_the_log(server, capsys, monkeypatch):
    async with a_live_scheduler(server, a_configuration(OWN_BINDER), [Devices, OwnBinder]) as live:
        monkeypatch.setitem(globals(), "STANDS_FOR_OTHER_MEANS", live.client)
        await live.node("node-1")
        await live.pod("web", bind="elsewhere", at="reserve")
        await live.bound("web")
        await live.until(lambda: not live.core.bindings)
    err = capsys.readouterr().err
    assert "it did not bind by the Binder service: what plugins added to the binding was not written" in err
    assert "Devices" in err
