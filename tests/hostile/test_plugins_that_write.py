"""A plugin that writes wherever it can, at every point and in every service, changes nothing for any other pod."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import pytest
from tests.hostile.writes import Writes
from tests.scheduler.pod_groups.scene import PREEMPTION, TOPOLOGY, Scene, members, played

from mooring.base.log import Log
from mooring.framework import (
    Allow,
    Bound,
    Objects,
    Plugin,
    PodsWhere,
    Reads,
    Refusal,
    Rejection,
    TermKind,
)
from mooring.framework.contract import SERVICES
from mooring.framework.events import Action, Hint
from mooring.framework.points import METHODS
from mooring.framework.services import Background, Binder, Metrics
from mooring.objects import Node, Pod
from mooring.objects.core import Namespace
from mooring.objects.placed import placed
from mooring.objects.pod_groups import PodGroup
from mooring.testing import a_node_object, a_pod, a_pod_group, a_taint, a_toleration, requires

GATES = sorted({*TOPOLOGY, *PREEMPTION})
CALLS = 2
"""So many calls of a method are searched."""
RESULTS: dict[str, Any] = {
    "sort_key": 0,
    "filter_nodes": (),
    "filter_nodes_in_what_if": (),
    "post_filter": Refusal("no"),
    "score": 1,
    "permit": Allow(),
    "needs_pre_bind": True,
    "explain": (),
    "placement_score": 1,
    "pod_group_post_filter": Refusal("no"),
}
"""What the methods return that must return something."""
PLAIN = sorted(METHODS.keys() - {"filter_nodes", "filter_nodes_in_what_if", "score_nodes", "placement_generate"})
VECTOR = ["filter_nodes", "filter_nodes_in_what_if", "score_nodes", "pre_filter", "pre_score", "reserve"]
MODES = {
    "node by node": (PLAIN, ["PrioritySort", "DefaultBinder", "DefaultPreemption"]),
    "many nodes at once": (VECTOR, []),
}
"""The methods, and the default plugins that would run in place of it."""
NOT_CALLED = {"explain", "unreserve", "hint"}
"""By a scheduler that explains nothing, where no placement fails, and where the plugin rejects no pod."""
COPIES = {("normalize", 2)}
"""Arguments that are the plugin's own: scores may be scaled in place."""
OWN = (Background, Metrics, Log)
"""Services of which every plugin has one of its own."""


class Writer(Plugin):
    """Tries every write in each of its methods, and goes on as if nothing had happened."""

    reads = Reads.PODS
    found: ClassVar[Writes | None]
    """None: it tries nothing."""
    calls: ClassVar[dict[str, int]]
    services: dict[type, Any]

    def search(self, method: str, given: Sequence[object]) -> None:
        calls = self.calls[method] = self.calls.get(method, 0) + 1
        if self.found is None or calls > CALLS:
            return
        for at, value in enumerate(given):
            if (method, at) not in COPIES:
                self.found.on(value, f"{method}: argument {at}")
        for wanted, service in self.services.items():
            if wanted not in OWN:
                self.found.on(service, f"{wanted.__name__}")

    def events(self) -> list[Hint]:
        return [Hint("Node", Action.ALL, self.hint), Hint("Pod", Action.ALL, self.hint)]

    def hint(self, pod: Pod, old: object, new: object) -> bool:
        self.search("hint", (pod, old, new))
        return True


def a_writer(methods: Sequence[str]) -> type[Writer]:
    services = [*SERVICES, Objects[Node], Objects[PodGroup], Objects[Namespace]]
    names = {f"service_{at}": each for at, each in enumerate(services)}

    def take(self: Writer, **given: object) -> None:
        self.services = {names[name]: service for name, service in given.items()}

    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    parameters += [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=wanted) for name, wanted in names.items()
    ]
    vars(take)["__signature__"] = inspect.Signature(parameters)
    return type("Writer", (Writer,), {"__init__": take, **{name: _method(name) for name in methods}})


def _method(name: str) -> Any:
    def result(given: Sequence[Any]) -> Any:
        match name:
            case "score_nodes":
                return np.ones(len(given[1]), np.int64)
            case "filter" | "pre_filter" if given[0].name == "rejected":
                return Rejection("no") if name == "filter" else Refusal("no")
            case "normalize":
                return given[2]
            case "normalize_placement_scores":
                return given[1]
        return RESULTS.get(name)

    async def act_later(self: Writer, *given: Any) -> Any:
        self.search(name, given)
        if name != "bind":
            return result(given)
        await self.services[Binder].bind(given[0], given[1].name)
        return Bound()

    def act(self: Writer, *given: Any) -> Any:
        self.search(name, given)
        return result(given)

    chosen = act_later if inspect.iscoroutinefunction(METHODS[name]) else act
    vars(chosen)["__signature__"] = inspect.signature(METHODS[name])
    return chosen


def the_nodes() -> list[Node]:
    taint = a_taint("team=a:PreferNoSchedule")
    return [a_node_object(name, cpu="4", labels={"zone": f"zone-{name}"}, taints=[taint]) for name in ("a", "b")]


def the_pods() -> list[Pod]:
    rich = a_pod(
        "rich",
        priority=10,
        cpu="1",
        labels={"app": "web"},
        affinity=requires([("zone", "In", ["zone-a", "zone-b"])]),
        tolerations=[a_toleration("team=a:PreferNoSchedule")],
        ports=[8080],
    )
    rejected, urgent = a_pod("rejected"), a_pod("urgent", cpu="4", priority=9)
    return [rich, rejected, urgent, *members(2), *members(2, group="large", cpu="64")]


def the_running() -> list[Pod]:
    return [a_pod(f"running-{node}", node=node, cpu="1", labels={"app": "web"}) for node in "ab"]


async def outcome_of(scene: Scene) -> dict[str, Any]:
    """What becomes of all pods, and of one that comes afterwards."""
    groups = [a_pod_group("gang", min_count=2, topology_key="zone"), a_pod_group("large", min_count=2)]
    scene.add(*the_nodes(), *the_running(), *groups, *the_pods())
    for instance in scene.core.assembly.current.instances.values():
        await scene.scheduler.lifecycle.start(instance)
    await scene.run()
    scene.add(a_node_object("late", cpu="2"))
    await scene.passes(seconds=30)
    scene.add(a_pod("next", cpu="1"))
    await scene.run()
    return {"bound": scene.bound(), "why": {key: value["message"] for key, value in scene.client.failed.items()}}


def outcomes(plugin: type[Plugin], disabled: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    async def story(scene: Scene) -> None:
        found.update(await outcome_of(scene))
        nodes = [*the_nodes(), a_node_object("late", cpu="2")]
        pods = {pod.name: pod for pod in [*the_pods(), a_pod("next", cpu="1")]}
        there = [*map(placed, the_running()), *(placed(pods[name], node) for name, node in found["bound"].items())]
        found["requested"] = {each.name: each.requested("cpu") for each in scene.core.state.nodes}
        assert found["requested"] == {
            node.name: sum(pod.request("cpu") for pod in there if pod.node == node.name) for node in nodes
        }

    played(GATES, story, plugin, disabled=disabled)
    return found


@pytest.mark.parametrize(("methods", "disabled"), MODES.values(), ids=MODES.keys())
def test_nothing_that_plugins_see_can_be_written(methods, disabled):
    where = PodsWhere()
    arguments = {"PodsWhere": where, "TermKind": TermKind.REQUIRED_AFFINITY, "Labels": {}, "NodeView": None}
    plugin = a_writer(methods)
    Writer.found, Writer.calls = None, {}
    calm = outcomes(plugin, disabled)
    Writer.found, Writer.calls = (tried := Writes(arguments, own=[where])), {}
    assert outcomes(plugin, disabled) == calm
    assert sorted(tried.done) == []
    assert tried.refused > 1_000
    assert {*methods, "hint"} - Writer.calls.keys() <= NOT_CALLED
