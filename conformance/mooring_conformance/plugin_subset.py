"""Only the results of some plugins, whatever the others would return: for work on one plugin at a time.

The others are replaced by what kube-scheduler recorded of them, so that the named ones run for the same nodes
and score the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mooring.engine import Form
from mooring.framework import Cycle, NodeView, Plugin, Pod, Point, Rejection
from mooring_conformance.comparing import PANIC, PASSES, Difference, differences, score_of, skips
from mooring_conformance.our_decision import Json, OurDecision, our_decision
from mooring_conformance.situation import Points, Situation

NO_VERDICT = ("gated", "error")


class AsRecorded(Plugin):
    """Rejects the nodes that plugins that do not run rejected in the recording; scores the others alike."""

    name = "(as recorded)"

    def __init__(self, rejected: Collection[str]) -> None:
        self._rejected = rejected

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("as recorded") if node.name in self._rejected else None


def differences_of(situation: Situation, form: Form, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    """Where these plugins differ from the recording."""
    if expect.get("error") or expect["result"] in ("noNodes", PANIC):
        return
    decided = our_decision(situation, form, _points(situation.points, expect, plugins))
    if decided.result in NO_VERDICT or expect["result"] in NO_VERDICT:
        yield from _without_verdict(decided, expect, plugins)
        return
    yield from _pre_filter(decided, expect["preFilter"], plugins, in_order(situation.points, Point.PRE_FILTER))
    if expect["preFilter"]["code"] == "Success":
        yield from _nodes(decided, expect, plugins, situation)
        yield from _scores(decided, expect, plugins)
    if _make_room(situation.points, plugins):
        yield from (each for each in differences(decided, expect) if each.kind.startswith("postFilter"))


def _points(points: Points, expect: Json, plugins: Collection[str]) -> Points:
    """The named plugins, and one that stands for all others, as recorded.

    What would make room can only be tried out with all of them.
    """
    if _make_room(points, plugins):
        return points
    kept = {point: [use for use in uses if use[0].name in plugins] for point, uses in points.items()}
    nodes: dict[str, Json | None] = expect.get("nodes") or {}
    rejected = {node for node, verdict in nodes.items() if verdict and verdict["plugin"] not in plugins}
    others = (AsRecorded(rejected), 1)
    kept[Point.FILTER] = [*kept[Point.FILTER], others]
    if points[Point.SCORE]:
        kept[Point.SCORE] = [*kept[Point.SCORE], others]
    return kept


def _make_room(points: Points, plugins: Collection[str]) -> bool:
    return any(plugin in plugins for plugin in in_order(points, Point.POST_FILTER))


def _without_verdict(decided: OurDecision, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    """Gates and errors: compared where one of the plugins caused them."""
    theirs = expect.get("preEnqueue")
    if "gated" in (decided.result, expect["result"]):
        if decided.pre_enqueue != theirs and (theirs is None or theirs["plugin"] in plugins):
            yield Difference("preEnqueue", "", decided.pre_enqueue, theirs)
    elif decided.result != expect["result"] and (decided.result == "error" or _names(expect["message"], plugins)):
        where = f"{decided.result} instead of {expect['result']}"
        yield Difference("result", where, decided.words, expect.get("message", ""))


def _nodes(decided: OurDecision, expect: Json, plugins: Collection[str], situation: Situation) -> Iterator[Difference]:
    order, kept_free = in_order(situation.points, Point.FILTER), situation.state.nominations.nodes
    for node, theirs in expect["nodes"].items():
        ours = decided.nodes.get(node)
        if theirs is not None and theirs["plugin"] in plugins:
            if ours != theirs:
                yield Difference("node", node, ours or PASSES, theirs, theirs["plugin"])
        elif (
            ours is not None
            and ours["plugin"] in plugins
            # One that comes later did not run in the recording; where pods are nominated, the order is unknown.
            and (theirs is None or (node not in kept_free and _before(order, ours["plugin"], theirs["plugin"])))
        ):
            yield Difference("node", node, ours, theirs or PASSES, ours["plugin"])


def _names(message: str, plugins: Collection[str]) -> bool:
    return any(f'"{plugin}"' in message for plugin in plugins)


def _before(order: list[str], one: str, other: str) -> bool:
    """Whether one plugin is known to run before the other. The engine's own verdict ("") comes before all."""
    return other in order and order.index(one) < order.index(other)


def in_order(points: Points, point: Point) -> list[str]:
    return [plugin.name for plugin, _ in points.get(point, ())]


def _pre_filter(decided: OurDecision, theirs: Json, plugins: Collection[str], order: list[str]) -> Iterator[Difference]:
    whose = theirs.get("plugin", "")
    refused = None
    if theirs["code"] != "Success":
        refused = {"plugin": whose, "code": theirs["code"], "reasons": theirs.get("reasons", [])}
    if (whose in plugins or refused is None) and decided.pre_filter != refused:
        yield Difference("preFilter", "", decided.pre_filter, refused, whose)
    ran = order[: order.index(whose)] if whose in order else order
    for plugin in ran:
        if plugin in plugins and (plugin in decided.skipped) != (plugin in theirs["skipped"]):
            yield Difference(
                "preFilter.skipped", "", skips(plugin in decided.skipped), skips(plugin in theirs["skipped"]), plugin
            )


def _scores(decided: OurDecision, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    if decided.scores is None or not expect.get("scores"):
        return
    if set(decided.scores) != set(expect["scores"]):
        return  # the nodes show why
    skipped = expect.get("scoreSkipped") or ()
    for plugin in plugins:
        if (plugin in decided.score_skipped) != (plugin in skipped):
            yield Difference(
                "scoreSkipped", "", skips(plugin in decided.score_skipped), skips(plugin in skipped), plugin
            )
            continue
        for node, theirs in expect["scores"].items():
            one, other = score_of(decided.scores[node], plugin), score_of(theirs, plugin)
            if one != other:
                yield Difference("score", node, one, other, plugin)
