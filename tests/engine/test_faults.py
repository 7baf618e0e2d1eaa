"""A plugin that raises or returns an invalid value fails one attempt, in kube-scheduler's words, and is named."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from tests.engine.builders import a_profile, a_state, made, scoring

from mooring.base.errors import PluginFault
from mooring.engine import decide
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling
from mooring.framework import NodesWhere, OnlyNodes, Plugin, PodsWhere, Refusal, Rejection, Rejections, Skip
from mooring.testing import a_pod


def raising(*_: Any) -> Any:
    raise ValueError("boom")


class NeedsFilterState(Plugin):
    name = "Needs"

    def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
        return cycle.filter_state(self)


class NeedsScoreState(Plugin):
    name = "Needs"

    def pre_score(self, pod: Any, feasible: Any, cycle: Any) -> Any:
        return None

    def score(self, pod: Any, node: Any, cycle: Any) -> Any:
        return cycle.score_state(Other())


class Other(Plugin):
    pass


def at_once(result: Any) -> Any:
    return lambda _pod, _nodes, _cycle: result


FAULTS = {
    "pre_filter raises": (made("X", pre_filter=raising), 'running PreFilter plugin "X": ValueError: boom'),
    "filter raises": (made("X", filter=raising), 'running "X" filter plugin: ValueError: boom'),
    "filter_nodes raises": (made("X", filter_nodes=raising), 'running "X" filter plugin: ValueError: boom'),
    "pre_score raises": (
        scoring("X", {"a": 1, "b": 2}, pre_score=raising),
        'running PreScore plugin "X": ValueError: boom',
    ),
    "score raises": (made("X", score=raising), 'running Score plugins: plugin "X" failed with: ValueError: boom'),
    "score_nodes raises": (
        made("X", score_nodes=raising),
        'running Score plugins: plugin "X" failed with: ValueError: boom',
    ),
    "normalize raises": (
        scoring("X", {"a": 1, "b": 2}, normalize=raising),
        'running Normalize on Score plugins: plugin "X" failed with: ValueError: boom',
    ),
    "an exception without words shows its type": (
        made("X", filter=lambda *_: (_ for _ in ()).throw(KeyError())),
        'running "X" filter plugin: KeyError',
    ),
    "pre_score cannot refuse": (
        scoring("X", {"a": 1, "b": 2}, pre_score=lambda *_: Refusal("no")),
        "running PreScore plugin \"X\": pre_score cannot refuse, but returned Refusal('no', code=UNSCHEDULABLE)",
    ),
    "filter returns an invalid value": (
        made("X", filter=lambda *_: False),
        'running "X" filter plugin: filter of node a returned False; it must return a Rejection or None',
    ),
    "filter_nodes gives an invalid value": (
        made("X", filter_nodes=at_once([True])),
        'running "X" filter plugin: filter_nodes gave True; it must give Rejections',
    ),
    "a mask of the wrong size": (
        made("X", filter_nodes=at_once([Rejections(np.array([True]), "full")])),
        'running "X" filter plugin: the mask of "full" is bool of shape (1,); it must be bool, one for each of 2 nodes',
    ),
    "a mask of the wrong size for where it is unresolvable": (
        made("X", filter_nodes=at_once([Rejections(np.array([True, False]), "full", np.array([True]))])),
        'running "X" filter plugin: the `unresolvable` of "full" is bool of shape (1,); '
        "it must be bool, one for each of 2 nodes",
    ),
    "a reason that is no text": (
        made("X", filter=lambda *_: Rejection(["cpu", "memory"])),  # type: ignore[arg-type]
        "running \"X\" filter plugin: a reason is ['cpu', 'memory'] (list); it must be text",
    ),
    "a reason at once that is no text": (
        made("X", filter_nodes=at_once([Rejections(np.array([True, False]), 7)])),  # type: ignore[arg-type]
        'running "X" filter plugin: a reason is 7 (int); it must be text',
    ),
    "a pre_filter's reason that is no text": (
        made("X", pre_filter=lambda *_: Refusal(None)),  # type: ignore[arg-type]
        'running PreFilter plugin "X": a reason is None (NoneType); it must be text',
    ),
    "a single name where a collection of names is due": (
        made("X", pre_filter=lambda *_: OnlyNodes("a")),
        "running PreFilter plugin \"X\": OnlyNodes('a') must be given a collection of names",
    ),
    "no names at all": (
        made("X", pre_filter=lambda *_: OnlyNodes(None)),  # type: ignore[arg-type]
        "running PreFilter plugin \"X\": TypeError: 'NoneType' object is not iterable",
    ),
    "a score above the range": (
        scoring("X", {"a": 3, "b": 101}),
        'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score 101, '
        "it should in the range of [0, 100] after normalizing",
    ),
    "a negative score": (
        scoring("X", {"a": 3, "b": -1}),
        'applying score defaultWeights on Score plugins: plugin "X" returns an invalid score -1, '
        "it should in the range of [0, 100] after normalizing",
    ),
    **{
        f"a score that is {value!r}": (
            scoring("X", {"a": 3, "b": value}),
            f'running Score plugins: plugin "X" failed with: the score of node b is {value!r} '
            f"({type(value).__name__}); a score must be a whole number",
        )
        for value in ("high", None, float("nan"), True, 50.0)
    },
    "a score that no number of 64 bits can hold": (
        scoring("X", {"a": 3, "b": 2**70}),
        f'running Score plugins: plugin "X" failed with: the score of node b is {2**70} (int); '
        "a score must fit into 64 bits",
    ),
    "scores at once that are no whole numbers": (
        made("X", score_nodes=at_once(np.array([1.0, np.nan]))),
        'running Score plugins: plugin "X" failed with: the score of node a is 1.0 (float); '
        "a score must be a whole number",
    ),
    "too few scores at once": (
        made("X", score_nodes=at_once(np.array([1]))),
        'running Score plugins: plugin "X" failed with: gave scores of shape (1,) for 2 nodes',
    ),
    "a state that pre_filter did not leave": (
        NeedsFilterState(),
        'running "Needs" filter plugin: reading "PreFilterNeeds" from cycleState: not found',
    ),
    "a state that pre_score did not leave": (
        NeedsScoreState(),
        'running Score plugins: plugin "Needs" failed with: reading "PreScoreOther" from cycleState: not found',
    ),
    "a tally read too late": (
        made("X", filter=lambda _pod, _node, cycle: cycle.tally(PodsWhere(), "zone", NodesWhere())),
        'running "X" filter plugin: cycle.tally was called in filter; '
        "call it in pre_filter or pre_score and keep the tally",
    ),
}


@pytest.mark.parametrize(("plugin", "message"), FAULTS.values(), ids=FAULTS.keys())
def test_the_message_of_the_pod(plugin: Plugin, message: str) -> None:
    """4.3.11, Isolation: scores are normalized, checked and weighted; a bad plugin fails only its own pod."""
    decision = decide(a_profile(plugin), a_pod(), a_state("a", "b"), start=1)
    assert decision.message == message
    assert isinstance(decision.fault, PluginFault)
    assert decision.fault.plugin == plugin.name
    assert decision.node is None
    assert not decision.is_refused
    assert decision.rejectors == (frozenset(), frozenset())
    assert decision.evidence()["fault"].items() >= {"plugin": plugin.name, "message": message}.items()


NO_REASON = {
    "a Rejection": (
        made("X", filter=lambda *_: Rejection()),
        "0/2 nodes are available: 2 node(s) rejected by plugin X without a reason.",
    ),
    "a Refusal": (
        made("X", pre_filter=lambda *_: Refusal()),
        "0/2 nodes are available: plugin X refused without a reason.",
    ),
}


@pytest.mark.parametrize(("plugin", "message"), NO_REASON.values(), ids=NO_REASON.keys())
def test_a_plugin_is_named_that_gives_no_reason_with(plugin: Plugin, message: str) -> None:
    decision = decide(a_profile(plugin), a_pod(), a_state("a", "b"))
    assert (decision.message, decision.is_refused) == (message, True)


def test_the_cause_is_kept_for_the_log() -> None:
    decision = decide(a_profile(made("X", filter=raising)), a_pod(), a_state("a"))
    assert decision.fault is not None
    assert isinstance(decision.fault.__cause__, ValueError)


def test_the_next_pod_is_decided_as_if_nothing_had_been() -> None:
    failing = made("X", filter=lambda pod, _node, _cycle: 1 / 0 if pod.name == "bad" else None)
    profile, state = a_profile(failing), a_state("a")
    assert decide(profile, a_pod("bad"), state).fault is not None
    assert decide(profile, a_pod("good"), state).node == "a"


def test_an_interrupt_is_no_plugin_fault() -> None:
    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        decide(a_profile(made("X", filter=interrupted)), a_pod(), a_state("a"))


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3)])
def test_a_plugin_that_gives_up_on_everything_gives_up_on_its_pod_alone(error: BaseException) -> None:
    def giving_up(*_: Any) -> Any:
        raise error

    decision = decide(a_profile(made("X", filter=giving_up)), a_pod(), a_state("a"))
    assert decision.fault is not None
    assert type(error).__name__ in str(decision.fault)


async def test_that_we_are_cancelled_ourselves_is_no_plugin_fault() -> None:
    cycle = decide(a_profile(), a_pod(), a_state("a")).cycle

    async def called() -> None:
        with calling(cycle, made("X"), ExtensionPoint.FILTER):
            await asyncio.Event().wait()

    task = asyncio.create_task(called())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


def test_a_skipped_plugin_left_no_state() -> None:
    class Skipping(Plugin):
        def pre_filter(self, pod: Any, cycle: Any) -> Any:
            return Skip()

        def score(self, pod: Any, node: Any, cycle: Any) -> Any:
            return cycle.filter_state(self)

    decision = decide(a_profile(Skipping()), a_pod(), a_state("a", "b"))
    assert 'reading "PreFilterSkipping" from cycleState: not found' in decision.message


def test_a_fault_of_a_plugin_that_binds_volumes_is_marked() -> None:
    class Volumes(Plugin):
        binds_volumes = True

        def filter(self, pod: Any, node: Any, cycle: Any) -> Any:
            raise ValueError("boom")

    for plugin, is_of_volumes in ((Volumes(), True), (made("X", filter=raising), False)):
        fault = decide(a_profile(plugin), a_pod(), a_state("a")).fault
        assert fault is not None
        assert fault.is_of_volumes is is_of_volumes
