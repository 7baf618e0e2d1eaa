"""After the decision: reserve, permit and unreserve. They return values; the scheduler does the waiting."""

from __future__ import annotations

import inspect
import math
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import msgspec

from mooring.base.durations import go_duration
from mooring.base.errors import PluginFault
from mooring.engine.cycle import EngineCycle
from mooring.engine.decision import Decision
from mooring.engine.extension_point import ExtensionPoint
from mooring.engine.plugin_call import calling, fault, with_reasons
from mooring.engine.profile import Profile
from mooring.engine.rejected import Rejectors
from mooring.framework import PENDING, Allow, Plugin, Point, Refusal, Wait
from mooring.state import RowView

LONGEST_WAIT_SECONDS = 15 * 60.0
WAITING_ON_PERMIT = "one or more plugins asked to wait and no plugin rejected pod"


class PlacementRefused(msgspec.Struct, frozen=True):
    """A plugin refused the pod after a node was chosen."""

    plugin: str
    refusal: Refusal

    @property
    def message(self) -> str:
        """kube-scheduler's message: the chosen node is the only one in question."""
        reasons = ", ".join(sorted(f"1 {reason}" for reason in self.refusal.reasons))
        return f"0/1 nodes are available: {reasons}." if reasons else "0/1 nodes are available:"

    @property
    def rejectors(self) -> Rejectors:
        names = frozenset((self.plugin,))
        return Rejectors(pending=names) if self.refusal.code is PENDING else Rejectors(names)


class Permitted(msgspec.Struct, frozen=True):
    """The binding cycle may start; or first wait for these plugins, each at most so many seconds."""

    waits: Mapping[str, float]
    message: str = ""
    """What the last of them waits for, in kube-scheduler's words."""


AT_ONCE = Permitted({})
"""No plugin lets the pod wait."""


def reserve(profile: Profile, decision: Decision) -> PlacementRefused | PluginFault | None:
    """Run the Reserve plugins. After anything but None: `unreserve`, then forget the pod."""
    try:
        with calling(decision.cycle, None, ExtensionPoint.RESERVE) as call:
            for plugin in profile.at(Point.RESERVE):
                if not callable(getattr(plugin, "reserve", None)):
                    continue
                call.switch_to(plugin)
                result = plugin.reserve(decision.pod, _view(decision), decision.cycle.shown)
                if isinstance(result, Refusal):
                    return PlacementRefused(plugin.name, with_reasons(plugin, ExtensionPoint.RESERVE, result))
                if result is not None:
                    return fault(
                        plugin, ExtensionPoint.RESERVE, f"reserve returned {result!r}; it must return a Refusal or None"
                    )
    except PluginFault as problem:
        return problem
    return None


Waits = Callable[[EngineCycle, Plugin, ExtensionPoint, Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def _for_ever(
    cycle: EngineCycle, plugin: Plugin, point: ExtensionPoint, call: Callable[[], Awaitable[Any]]
) -> Any:
    with calling(cycle, plugin, point):
        return await call()


async def unreserve(profile: Profile, decision: Decision, waits: Waits = _for_ever) -> list[PluginFault]:
    """Undo what was reserved: every reserve plugin, last first, also those that have reserved nothing.

    A plugin that fails keeps no other from undoing; the faults come back for the log. `waits` is how an async one is
    waited for.
    """
    faults = []
    for plugin in reversed(profile.at(Point.RESERVE)):
        if not callable(getattr(plugin, "unreserve", None)):
            continue
        try:
            with calling(decision.cycle, plugin, ExtensionPoint.UNRESERVE):
                undone = plugin.unreserve(decision.pod, _view(decision), decision.cycle.shown)
            if inspect.isawaitable(undone):
                await waits(decision.cycle, plugin, ExtensionPoint.UNRESERVE, partial(_itself, undone))
        except PluginFault as problem:
            faults.append(problem)
    return faults


async def _itself(awaited: Awaitable[Any]) -> Any:
    return await awaited


def permit(profile: Profile, decision: Decision) -> Permitted | PlacementRefused | PluginFault:
    """Run the Permit plugins. After a refusal or a fault: `unreserve`, then forget the pod."""
    plugins = profile.at(Point.PERMIT)
    if not plugins:
        return AT_ONCE
    waits: dict[str, float] = {}
    message = ""
    for plugin in plugins:
        try:
            with calling(decision.cycle, plugin, ExtensionPoint.PERMIT):
                result = plugin.permit(decision.pod, _view(decision), decision.cycle.shown)
                if isinstance(result, Wait):
                    waits[plugin.name] = _bounded(result)
                    message = f"{result.reason}, {WAITING_ON_PERMIT}" if result.reason else WAITING_ON_PERMIT
            if isinstance(result, Refusal):
                return PlacementRefused(plugin.name, with_reasons(plugin, ExtensionPoint.PERMIT, result))
        except PluginFault as problem:
            return problem
        if isinstance(result, Wait):
            continue
        if result is not None and not isinstance(result, Allow):
            return fault(
                plugin, ExtensionPoint.PERMIT, f"permit returned {result!r}; it must return Allow, Wait or a Refusal"
            )
    return Permitted(waits, message)


def waited_too_long(plugin: str, seconds: float) -> str:
    """kube-scheduler's message for a pod whose wait on permit timed out."""
    return f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"


def _bounded(wait: Wait) -> float:
    seconds = min(float(wait.seconds), LONGEST_WAIT_SECONDS)
    if math.isnan(seconds) or seconds < 0:  # no timer of the event loop would fire any more for the one
        raise ValueError(f"{wait!r} is no time to wait")
    return seconds


def _view(decision: Decision) -> RowView:
    assert decision.view is not None, f"{decision!r} has no node"
    return decision.view
