"""A plugin that raises what is no `Exception`, anywhere: a fault under its name, and never the end of the process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.engine import builders as made
from tests.scheduler.conftest import Live, a_configuration, a_live_scheduler, a_profile

from mooring.base.errors import OperatorMistake, PluginFault
from mooring.base.foreign_code import described, is_its_own
from mooring.base.log import Log
from mooring.config import load_configuration
from mooring.engine import decide
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling
from mooring.framework import (
    Action,
    Args,
    Background,
    Cycle,
    Hint,
    Node,
    NodeRows,
    NodeView,
    Objects,
    Plugin,
    Pod,
    QueuedPod,
    Rejection,
    Rejections,
)
from mooring.framework.registry import Registry
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.cycle.binding_cycle import BindingCycles
from mooring.scheduler.plugin_runtime.plugin_errors import NAME
from mooring.testing import a_pod

pytestmark = pytest.mark.usefixtures("private_runtime_folder")


class Unusual(BaseException):
    """Of no type that anything expects."""


class Unprintable(Exception):
    def __str__(self) -> str:
        raise GeneratorExit


RAISED = {
    "GeneratorExit": GeneratorExit,
    "SystemExit": SystemExit,
    "CancelledError": asyncio.CancelledError,
    "BaseException": Unusual,
    "BaseExceptionGroup": lambda: BaseExceptionGroup("several", [GeneratorExit()]),
    "an error that cannot be printed": Unprintable,
}
any_error = pytest.mark.parametrize("raised", RAISED.values(), ids=RAISED.keys())

POINTS = {
    "pre_enqueue": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "filter_nodes": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "score_nodes": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "permit": "Permit",
    "needs_pre_bind": "PreBindPreFlight",
    "pre_bind": "PreBind",
    "bind": "Bind",
    "post_bind": "PostBind",
    "unreserve": "Unreserve",
    "start": "Start",
    "stop": "Stop",
}
SILENT = ("post_filter", "post_bind", "start", "stop")
"""Points whose faults leave the pod's result as it is."""


def raising_at(point: str, raised: Any) -> type[Plugin]:
    def act(self: Plugin, *_: Any) -> Any:
        raise raised()

    async def act_later(self: Plugin, *_: Any) -> Any:
        await asyncio.sleep(0)
        raise raised()

    async def wait_in_vain(self: Plugin, *_: Any) -> Any:
        raise RuntimeError("so that something must be undone")

    is_async = point in ("pre_bind", "bind", "post_bind", "start", "stop")
    more: dict[str, dict[str, Any]] = {
        "pre_score": {"score": lambda *_: 1},
        "normalize": {"score": lambda *_: 1},
        "needs_pre_bind": {"pre_bind": wait_in_vain},
        "unreserve": {"pre_bind": wait_in_vain},
        "start": {"score": lambda *_: 1},
        "stop": {"score": lambda *_: 1},
    }
    return type("Bad", (Plugin,), {point: act_later if is_async else act, **more.get(point, {})})


def a_bad_profile(plugin: type[Plugin]) -> str:
    if not hasattr(plugin, "bind"):
        return a_profile("broken", plugins=["Bad"])
    bind = "bind: {enabled: [{name: Bad}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}"
    return f"- schedulerName: broken\n  plugins: {{{bind}}}"


def errors(live: Live) -> set[tuple[str, str]]:
    text = live.scheduler.metrics.text().decode()
    found = re.findall(rf'^{NAME}{{extension_point="(\w+)",plugin="(\w+)"}}', text, re.MULTILINE)
    return {(plugin, point) for point, plugin in found}


CASES = [(point, "GeneratorExit") for point in POINTS] + [
    (point, raised) for point in ("filter", "bind", "start", "stop") for raised in RAISED if raised != "GeneratorExit"
]


@pytest.mark.parametrize(("point", "kind"), CASES)
async def test_what_a_plugin_raises_is_its_fault_at(server, capsys, point, kind):
    """Isolation: the plugin is named in the log and the metric, its pod keeps a result, others are scheduled."""
    plugin = raising_at(point, RAISED[kind])
    config = a_configuration("- schedulerName: default-scheduler", a_bad_profile(plugin))
    async with a_live_scheduler(server, config, [plugin]) as live:
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("theirs", scheduler="broken", cpu="100" if point == "post_filter" else "100m")
        if point in SILENT and point != "post_filter":
            await live.bound("theirs")
        else:
            await live.refused("theirs")
        await live.pod("ours")
        await live.bound("ours")
        await live.until(lambda: point == "stop" or ("Bad", POINTS[point]) in errors(live))
    assert "Bad" in capsys.readouterr().err


class BadHint(Plugin):
    name = "Bad"

    def events(self) -> list[Hint]:
        return [Hint(Node, Action.ADD, self._raise)]

    def _raise(self, pod: Pod, before: Node | None, after: Node) -> bool:
        raise GeneratorExit

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("node(s) are not good enough")


class BadWork(Plugin):
    name = "Bad"

    def __init__(self, background: Background) -> None:
        self._background = background

    async def start(self) -> None:
        self._background.run(self._work)

    async def _work(self) -> None:
        raise GeneratorExit

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("node(s) are not good enough")


class Incomparable:
    def __lt__(self, other: object) -> bool:
        raise GeneratorExit


class BadOrder(Plugin):
    name = "Bad"

    def sort_key(self, queued: QueuedPod) -> Any:
        if queued.pod.name == "theirs":
            raise GeneratorExit
        return Incomparable()


SORT = "queueSort: {enabled: [{name: Bad}], disabled: [{name: PrioritySort}]}"


@pytest.mark.parametrize(
    ("plugin", "point"),
    [(BadHint, "QueueingHint"), (BadWork, "Background"), (BadOrder, "QueueSort")],
    ids=["a queueing hint", "background work", "a sort key"],
)
async def test_what_is_raised_beside_the_cycle_is_the_plugins_fault_in(server, capsys, plugin, point):
    """Isolation, Q6, Q30: a bad plugin fails only its own pod; one queue, ordered by the sort plugin; Queue means
    activeQ, or backoffQ while backoff lasts.
    """
    plugins = f"plugins: {{{SORT}}}"
    profiles = (
        [f"- schedulerName: default-scheduler\n  {plugins}", f"- schedulerName: broken\n  {plugins}"]
        if plugin is BadOrder
        else ["- schedulerName: default-scheduler", a_profile("broken", plugins=["Bad"])]
    )
    async with a_live_scheduler(server, a_configuration(*profiles), [plugin]) as live:
        await live.node("node-1")
        await live.pod("theirs", scheduler="broken")
        await (live.bound("theirs") if plugin is BadOrder else live.refused("theirs"))
        await live.node("node-2")
        for name in ("one", "two", "three"):
            await live.pod(name)
        await live.bound("one", "two", "three")
        await live.until(lambda: ("Bad", point) in errors(live))
    assert "Bad" in capsys.readouterr().err


class BadIndex(Plugin):
    name = "Bad"

    def __init__(self, nodes: Objects[Node]) -> None:
        self._nodes = nodes.indexed(self._keys)

    def _keys(self, node: Node) -> Iterator[str]:
        if node.name == "node-1":
            raise GeneratorExit
        yield node.name

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None if self._nodes.at(node.name) else Rejection("node(s) are in no index")


async def test_an_object_whose_keys_raise_is_in_no_index_and_others_are(server, capsys):
    config = a_configuration(a_profile("default-scheduler", plugins=["Bad"]))
    async with a_live_scheduler(server, config, [BadIndex]) as live:
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("ours")
        assert await live.bound("ours") == ["node-2"]
    assert "Failed to compute the index keys of an object" in capsys.readouterr().err


def _decide_badly(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(profile: Any, pod: Pod, *more: Any, **values: Any) -> Any:
        if pod.name == "theirs":
            raise GeneratorExit
        return decide(profile, pod, *more, **values)

    monkeypatch.setattr("mooring.scheduler.wiring.decide", act)


def _bind_badly(monkeypatch: pytest.MonkeyPatch) -> None:
    real = BindingCycles._run

    async def act(self: BindingCycles, placement: Any) -> None:
        if placement.pod.name == "theirs":
            raise GeneratorExit
        await real(self, placement)

    monkeypatch.setattr(BindingCycles, "_run", act)


@pytest.mark.parametrize("break_it", [_decide_badly, _bind_badly], ids=["deciding", "binding"])
async def test_what_our_own_code_raises_costs_one_pod_an_attempt_while(server, monkeypatch, break_it):
    break_it(monkeypatch)
    async with a_live_scheduler(server) as live:
        await live.node("node-1")
        await live.pod("theirs")
        await live.refused("theirs")
        await live.pod("ours")
        await live.bound("ours")


@any_error
def test_a_plugin_file_that_raises_when_it_is_run_is_a_mistake_that_names_it(tmp_path: Path, raised: Any):
    file = tmp_path / "bad.py"
    file.write_text("def fail(error):\n    raise error\nimport builtins\nfail(builtins.raised_by_the_test())\n")
    import builtins

    builtins.raised_by_the_test = raised  # type: ignore[attr-defined]
    try:
        with pytest.raises(OperatorMistake, match=r"bad\.py cannot be imported"):
            Registry().add_path(str(file))
    finally:
        del builtins.raised_by_the_test  # type: ignore[attr-defined]


@any_error
def test_a_constructor_whose_annotation_raises_is_a_mistake_that_names_the_parameter(raised: Any):
    def fail() -> None:
        raise raised()

    body = {"__name__": __name__, "fail": fail}
    exec("def __init__(self, nodes: 'fail()') -> None: ...", body)
    bad = type("Bad", (Plugin,), {"__init__": body["__init__"], "filter": BadHint.filter})
    with pytest.raises(OperatorMistake, match=r"Bad\.__init__\(nodes\)\n.*its type cannot be read: "):
        Registry().add(bad, "test")


class BadArgs(Args):
    kind_of_error: str = "GeneratorExit"

    def mistakes(self) -> Iterator[tuple[str, str]]:
        yield "kindOfError", "is one mistake"
        raise GeneratorExit


class ArgsThatRaise(Plugin):
    def __init__(self, args: BadArgs) -> None:
        self.args = args

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None


def test_arguments_whose_check_raises_are_a_mistake_that_names_them():
    registry = catalogue()
    registry.add(ArgsThatRaise, "test")
    config = a_configuration(
        a_profile("default-scheduler", plugins=["ArgsThatRaise"], args="[{name: ArgsThatRaise, args: {}}]")
    )
    with pytest.raises(OperatorMistake, match=r"BadArgs\.mistakes raised GeneratorExit"):
        load_configuration(config, source="test.yaml", registry=registry)


class EventsThatRaise(Plugin):
    def events(self) -> Sequence[Hint]:
        raise GeneratorExit

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return None


async def test_events_that_raise_are_a_mistake_that_names_them(server):
    config = a_configuration(a_profile("default-scheduler", plugins=["EventsThatRaise"]))
    with pytest.raises(OperatorMistake, match=r"EventsThatRaise\.events\n.*GeneratorExit"):
        async with a_live_scheduler(server, config, [EventsThatRaise]):
            pass


# A generator that is closed gets a GeneratorExit too, and that one is no fault.


class Yields(Plugin):
    def filter_nodes(self, pod: Pod, nodes: NodeRows, cycle: Cycle) -> Iterator[Rejections]:
        yield from ()


async def test_closing_a_coroutine_that_waits_for_a_plugin_is_no_fault():
    cycle = decide(made.a_profile(), a_pod(), made.a_state("a")).cycle
    caught: list[BaseException] = []

    async def called() -> None:
        try:
            with calling(cycle, Yields(), ExtensionPoint.FILTER):
                await asyncio.get_running_loop().create_future()
        except BaseException as error:
            caught.append(error)
            raise

    waiting = called()
    waiting.send(None)
    waiting.close()
    assert [type(error) for error in caught] == [GeneratorExit]


async def test_a_generator_exit_raised_by_awaited_code_is_a_fault():
    cycle = decide(made.a_profile(), a_pod(), made.a_state("a")).cycle

    async def raising() -> None:
        raise GeneratorExit

    with pytest.raises(PluginFault, match="GeneratorExit"), calling(cycle, Yields(), ExtensionPoint.FILTER):
        await raising()


def test_ctrl_c_is_never_a_plugins_own():
    assert not is_its_own(KeyboardInterrupt())


def test_an_error_that_cannot_be_printed_is_described_and_logged(capsys):
    assert described(Unprintable()) == "Unprintable: <Unprintable, whose __str__ raises GeneratorExit>"
    Log("test").error("It failed", err=Unprintable())
    assert "Unprintable" in capsys.readouterr().err
