"""Only what some plugins say, whatever the others would: for work on one plugin at a time.

The others are replaced by what kube-scheduler recorded of them, so that the named ones are asked about the same nodes
and score the same ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from mooring.engine import Form
from mooring.framework import Cycle, NodeView, Plugin, Pod, Point, Rejection
from mooring_conformance.comparing import PASSES, Difference, differences, score_of, skips
from mooring_conformance.situation import Points, Situation
from mooring_conformance.told import Json, Told, tell

NO_VERDICT = ("gated", "error")


class AsRecorded(Plugin):
    """Rejects the nodes that plugins which are not asked rejected in the recording; likes the others alike."""

    name = "(as recorded)"

    def __init__(self, rejected: Collection[str]) -> None:
        self._rejected = rejected

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> Rejection | None:
        return Rejection("as recorded") if node.name in self._rejected else None


def differences_of(situation: Situation, form: Form, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    """What these plugins say otherwise than they did in the recording."""
    if expect.get("error") or expect["result"] == "noNodes":
        return
    told = tell(situation, form, _points(situation.points, expect, plugins))
    if told.result in NO_VERDICT or expect["result"] in NO_VERDICT:
        yield from _without_verdict(told, expect, plugins)
        return
    yield from _pre_filter(told, expect["preFilter"], plugins, in_order(situation.points, Point.PRE_FILTER))
    if expect["preFilter"]["code"] == "Success":
        yield from _nodes(told, expect, plugins, situation)
        yield from _scores(told, expect, plugins)
    if _make_room(situation.points, plugins):
        yield from (each for each in differences(told, expect) if each.kind.startswith("postFilter"))


def _points(points: Points, expect: Json, plugins: Collection[str]) -> Points:
    """The named plugins, and one that speaks for all others as recorded.

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


def _without_verdict(told: Told, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    """Gates and errors: compared where one of the plugins has spoken."""
    theirs = expect.get("preEnqueue")
    if "gated" in (told.result, expect["result"]):
        if told.pre_enqueue != theirs and (theirs is None or theirs["plugin"] in plugins):
            yield Difference("preEnqueue", "", told.pre_enqueue, theirs)
    elif told.result != expect["result"] and (told.result == "error" or _names(expect["message"], plugins)):
        where = f"{told.result} instead of {expect['result']}"
        yield Difference("result", where, told.words, expect.get("message", ""))


def _nodes(told: Told, expect: Json, plugins: Collection[str], situation: Situation) -> Iterator[Difference]:
    order, kept_free = in_order(situation.points, Point.FILTER), situation.state.nominations.nodes
    for node, theirs in expect["nodes"].items():
        ours = told.nodes.get(node)
        if theirs is not None and theirs["plugin"] in plugins:
            if ours != theirs:
                yield Difference("node", node, ours or PASSES, theirs, theirs["plugin"])
        elif (
            ours is not None
            and ours["plugin"] in plugins
            # One that comes later was not asked in the recording; where pods are nominated, order tells nothing.
            and (theirs is None or (node not in kept_free and _before(order, ours["plugin"], theirs["plugin"])))
        ):
            yield Difference("node", node, ours, theirs or PASSES, ours["plugin"])


def _names(message: str, plugins: Collection[str]) -> bool:
    return any(f'"{plugin}"' in message for plugin in plugins)


def _before(order: list[str], one: str, other: str) -> bool:
    """Whether one plugin is known to be asked before the other. The engine's own verdict ("") comes before all."""
    return other in order and order.index(one) < order.index(other)


def in_order(points: Points, point: Point) -> list[str]:
    return [plugin.name for plugin, _ in points.get(point, ())]


def _pre_filter(told: Told, theirs: Json, plugins: Collection[str], order: list[str]) -> Iterator[Difference]:
    whose = theirs.get("plugin", "")
    refused = None
    if theirs["code"] != "Success":
        refused = {"plugin": whose, "code": theirs["code"], "reasons": theirs.get("reasons", [])}
    if (whose in plugins or refused is None) and told.pre_filter != refused:
        yield Difference("preFilter", "", told.pre_filter, refused, whose)
    asked = order[: order.index(whose)] if whose in order else order
    for plugin in asked:
        if plugin in plugins and (plugin in told.skipped) != (plugin in theirs["skipped"]):
            yield Difference(
                "preFilter.skipped", "", skips(plugin in told.skipped), skips(plugin in theirs["skipped"]), plugin
            )


def _scores(told: Told, expect: Json, plugins: Collection[str]) -> Iterator[Difference]:
    if told.scores is None or not expect.get("scores"):
        return
    if set(told.scores) != set(expect["scores"]):
        return  # the nodes say why
    skipped = expect.get("scoreSkipped") or ()
    for plugin in plugins:
        if (plugin in told.score_skipped) != (plugin in skipped):
            yield Difference("scoreSkipped", "", skips(plugin in told.score_skipped), skips(plugin in skipped), plugin)
            continue
        for node, theirs in expect["scores"].items():
            one, other = score_of(told.scores[node], plugin), score_of(theirs, plugin)
            if one != other:
                yield Difference("score", node, one, other, plugin)
