"""After the decision: reserve in order, permit, and undoing everything in reverse."""

from __future__ import annotations

import math
from typing import Any

from tests.engine.builders import a_profile, a_state, made

from mooring.base.errors import PluginFault
from mooring.engine import Decision, Permitted, PlacementRefused, Profile, decide, permit, reserve, unreserve
from mooring.engine.reservation import WAITING_ON_PERMIT
from mooring.framework import PENDING, Allow, Plugin, Refusal, Wait
from mooring.testing import a_pod


def decided(*plugins: Plugin) -> tuple[Profile, Decision]:
    profile = a_profile(*plugins)
    return profile, decide(profile, a_pod(), a_state("a"))


def reserving(name: str, done: list[str], result: Any = None) -> Plugin:
    def reserve(pod: Any, node: Any, cycle: Any) -> Any:
        done.append(f"reserve {name} on {node.name}")
        return result

    def unreserve(pod: Any, node: Any, cycle: Any) -> None:
        done.append(f"unreserve {name}")

    return made(name, reserve=reserve, unreserve=unreserve)


async def test_reserving_stops_at_the_first_refusal_and_everything_is_undone_in_reverse() -> None:
    """4.3.14: a failed Reserve unreserves in reverse order."""
    done: list[str] = []
    refusal = Refusal("taken")
    profile, decision = decided(
        *(reserving(name, done, result) for name, result in (("1", None), ("2", refusal), ("3", None)))
    )
    assert reserve(profile, decision) == PlacementRefused("2", refusal)
    assert await unreserve(profile, decision) == []
    assert done == ["reserve 1 on a", "reserve 2 on a", "unreserve 3", "unreserve 2", "unreserve 1"]


def test_reserving_without_objection_is_nothing_to_report() -> None:
    assert reserve(*decided(reserving("1", []))) is None


def test_the_message_of_a_refusal_after_the_choice() -> None:
    refused = PlacementRefused("X", Refusal("b", "a", code=PENDING))
    assert refused.message == "0/1 nodes are available: 1 a, 1 b."
    assert refused.rejectors == (frozenset(), frozenset({"X"}))
    assert PlacementRefused("X", Refusal("no")).rejectors == (frozenset({"X"}), frozenset())


async def test_undoing_awaits_what_is_async_and_passes_over_what_fails() -> None:
    done: list[str] = []

    async def later(pod: Any, node: Any, cycle: Any) -> None:
        done.append("later")

    def failing(*_: Any) -> None:
        raise ValueError("boom")

    profile, decision = decided(made("Later", unreserve=later), made("Failing", unreserve=failing))
    faults = await unreserve(profile, decision)
    assert done == ["later"]
    assert [str(fault) for fault in faults] == ['running Unreserve plugin "Failing": ValueError: boom']


async def test_undoing_works_when_the_node_is_gone() -> None:
    done: list[str] = []
    profile, decision = decided(reserving("1", done))
    decision.cycle.state.remove_node("a")
    assert await unreserve(profile, decision) == []


def test_permit_collects_the_waits_and_bounds_them() -> None:
    """4.3.15: Permit allows, rejects or waits."""
    profile, decision = decided(
        made("Goes", permit=lambda *_: Allow()),
        made("Quiet", permit=lambda *_: None),
        made("Waits", permit=lambda *_: Wait(5)),
        made("Patient", permit=lambda *_: Wait(1e9)),
    )
    assert permit(profile, decision) == Permitted({"Waits": 5, "Patient": 900.0}, WAITING_ON_PERMIT)


def test_a_refusal_in_permit_ends_it() -> None:
    """4.3.15: Permit allows, rejects or waits."""
    profile, decision = decided(made("Waits", permit=lambda *_: Wait(5)), made("No", permit=lambda *_: Refusal("no")))
    assert permit(profile, decision) == PlacementRefused("No", Refusal("no"))


def test_faults_are_named() -> None:
    """Isolation: a bad plugin fails only its own pod."""

    def raising(*_: Any) -> Any:
        raise ValueError("boom")

    results = [
        reserve(*decided(made("X", reserve=raising))),
        reserve(*decided(made("X", reserve=lambda *_: "x"))),
        permit(*decided(made("X", permit=raising))),
        permit(*decided(made("X", permit=lambda *_: True))),
        permit(*decided(made("X", permit=lambda *_: Wait("long")))),  # type: ignore[arg-type]
        permit(*decided(made("X", permit=lambda *_: Wait(math.nan)))),
        reserve(*decided(made("X", reserve=lambda *_: Refusal(1)))),  # type: ignore[arg-type]
    ]
    assert all(isinstance(result, PluginFault) and result.plugin == "X" for result in results)
    assert [str(result) for result in results] == [
        'running Reserve plugin "X": ValueError: boom',
        "running Reserve plugin \"X\": reserve returned 'x'; it must return a Refusal or None",
        'running Permit plugin "X": ValueError: boom',
        'running Permit plugin "X": permit returned True; it must return Allow, Wait or a Refusal',
        "running Permit plugin \"X\": ValueError: could not convert string to float: 'long'",
        "running Permit plugin \"X\": ValueError: Wait(seconds=nan, reason='') is no time to wait",
        'running Reserve plugin "X": a reason is 1 (int); it must be text',
    ]
