"""Where our decision differs from kube-scheduler's.

`best` is a set and any member is right; a single feasible node, or a nominated one that passes, is taken without
scoring; of an error it only counts that it is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mooring_conformance.our_decision import Json, OurDecision

PASSES = "passes"
PANIC = "panic"
"""The recorded plugin crashed: that ours does not is all that counts."""


@dataclass(frozen=True)
class Tolerance:
    """How far scores may be apart."""

    raw: float = 0.0
    relative: float = 0.0
    normalized: int = 0


TOLERANCES: Mapping[str, Tolerance] = {
    # Differences of exponentials, times 10¹⁵.
    "Peaks": Tolerance(raw=64, relative=1e-9, normalized=1),
}


@dataclass(frozen=True)
class Difference:
    """One thing that we decide otherwise."""

    kind: str
    """Which part of the decision: result, preFilter, node, score, …"""
    where: str
    """The node or the plugin it is about; empty for the pod as a whole."""
    ours: Any
    theirs: Any
    plugin: str = ""
    """Whose rule it is, as far as that is known."""


def differences(decided: OurDecision, expect: Json) -> Iterator[Difference]:
    """All of it."""
    result = "rejected" if expect.get("error") else expect["result"]
    if result == PANIC:
        return
    if decided.result != result:
        yield Difference("result", f"{decided.result} instead of {result}", *_reasons(decided, expect))
        return
    if result in ("rejected", "error"):
        return
    if result == "gated":
        if decided.pre_enqueue != expect["preEnqueue"]:
            yield Difference(
                "preEnqueue", "", decided.pre_enqueue, expect["preEnqueue"], expect["preEnqueue"]["plugin"]
            )
        return
    if "preFilter" in expect:
        yield from _pre_filter(decided, expect["preFilter"])
    yield from _nodes(decided, expect)
    if result == "feasible":
        yield from _chosen(decided, expect)
    elif decided.message != expect.get("message", ""):
        yield Difference("message", "", decided.message, expect.get("message", ""))
    yield from _post_filter(decided.post_filter, expect.get("postFilter"))


def _reasons(decided: OurDecision, expect: Json) -> tuple[str, str]:
    ours = decided.words or decided.message or decided.chosen or str(decided.pre_enqueue)
    theirs = expect.get("error") or expect.get("message") or " or ".join(expect.get("best") or ())
    return ours, theirs or str(expect.get("preEnqueue"))


def _pre_filter(decided: OurDecision, theirs: Json) -> Iterator[Difference]:
    refusal = None
    if theirs["code"] != "Success":
        refusal = {"plugin": theirs.get("plugin", ""), "code": theirs["code"], "reasons": theirs.get("reasons", [])}
    if decided.pre_filter != refusal:
        whose = (refusal or decided.pre_filter or {}).get("plugin", "")
        yield Difference("preFilter", "", decided.pre_filter, refusal, whose)
    for plugin in sorted(decided.skipped.symmetric_difference(theirs["skipped"])):
        is_ours = plugin in decided.skipped
        yield Difference("preFilter.skipped", "", skips(is_ours), skips(not is_ours), plugin)


def _nodes(decided: OurDecision, expect: Json) -> Iterator[Difference]:
    for node, theirs in (expect.get("nodes") or {}).items():
        ours = decided.nodes.get(node)
        if ours != theirs:
            yield Difference("node", node, ours or PASSES, theirs or PASSES, (theirs or ours or {}).get("plugin", ""))


def _chosen(decided: OurDecision, expect: Json) -> Iterator[Difference]:
    right = [decided.nominated] if expect.get("nominatedNodePasses") else expect["best"]
    is_vague = any(is_total_vague(numbers) for numbers in expect.get("scores", {}).values())
    if decided.chosen not in right and not is_vague:
        yield Difference("chosen", "", decided.chosen, " or ".join(right))
    if decided.scores is None or "scores" not in expect:
        if len(expect["feasible"]) > 1:
            yield Difference("scores", "", decided.scores, expect.get("scores"))
        return
    theirs = set(expect.get("scoreSkipped") or ())
    for plugin in sorted(decided.score_skipped ^ theirs):
        yield Difference("scoreSkipped", "", skips(plugin in decided.score_skipped), skips(plugin in theirs), plugin)
    yield from scores(decided.scores, expect["scores"])


def scores(ours: Mapping[str, Json], theirs: Mapping[str, Json]) -> Iterator[Difference]:
    noisy = {plugin for plugin, tolerance in TOLERANCES.items() if _is_all_noise(theirs, plugin, tolerance)}
    for node, numbers in theirs.items():
        mine = ours.get(node)
        if mine is None:
            yield Difference("score", node, None, numbers)
            continue
        for plugin in {**numbers["raw"], **mine["raw"]}:
            one, other = score_of(mine, plugin), score_of(numbers, plugin)
            if one != other and not _is_close(mine, numbers, plugin, is_all_noise=plugin in noisy):
                yield Difference("score", node, one, other, plugin)
        if mine["total"] != numbers["total"] and not is_total_vague(numbers):
            yield Difference("total", node, mine["total"], numbers["total"])


def score_of(numbers: Json, plugin: str) -> str | None:
    """Raw, normalised and weighted, readably."""
    if plugin not in numbers["raw"]:
        return None
    return f"{numbers['raw'][plugin]} → {numbers['normalized'][plugin]} → {numbers['scores'][plugin]}"


def _is_all_noise(theirs: Mapping[str, Json], plugin: str, tolerance: Tolerance) -> bool:
    """Whether raw scores are so close together that normalization makes anything of them."""
    raw = [numbers["raw"][plugin] for numbers in theirs.values() if plugin in numbers["raw"]]
    return bool(raw) and max(raw) - min(raw) <= 2 * tolerance.raw


def _is_close(ours: Json, theirs: Json, plugin: str, *, is_all_noise: bool) -> bool:
    """Whether scores differ by no more than the noise of floating point in the recorded plugin."""
    tolerance = TOLERANCES.get(plugin)
    if tolerance is None or plugin not in ours["raw"] or plugin not in theirs["raw"]:
        return False
    one, other = ours["raw"][plugin], theirs["raw"][plugin]
    is_raw_close = abs(one - other) <= max(tolerance.raw, tolerance.relative * abs(other))
    apart = abs(ours["normalized"][plugin] - theirs["normalized"][plugin])
    return is_raw_close and (is_all_noise or apart <= tolerance.normalized)


def is_total_vague(theirs: Json) -> bool:
    """Whether the total, and with it the best node, depends on noise."""
    return any(plugin in TOLERANCES for plugin in theirs["raw"])


def skips(is_skipped: bool) -> str:
    return "skips" if is_skipped else "runs"


def _post_filter(ours: Json | None, theirs: Json | None) -> Iterator[Difference]:
    if ours is None or theirs is None:
        if ours != theirs:
            yield Difference("postFilter", "", ours, theirs)
        return
    for part in ("code", "message"):
        if ours[part] != theirs[part]:
            yield Difference(f"postFilter.{part}", "", ours[part], theirs[part])
    node = ours["nominatedNode"]
    if not theirs.get("nominatedNodes"):
        if node != theirs["nominatedNode"]:
            yield Difference("postFilter.nominatedNode", "", node, theirs["nominatedNode"])
    elif ours["code"] == "Success":
        yield from _plan(ours, theirs)


def _plan(ours: Json, theirs: Json) -> Iterator[Difference]:
    """Where there is one on both sides. With `sampled`, the nodes that are tried are random; each has its victims."""
    node, candidates = ours["nominatedNode"], theirs["candidates"]
    right = candidates if theirs.get("sampled") else theirs["nominatedNodes"]
    if node not in right:
        yield Difference("postFilter.nominatedNode", "", node, list(right))
        return
    if ours["victims"] != candidates[node]["victims"]:
        yield Difference("postFilter.victims", node, ours["victims"], candidates[node]["victims"])
    if node == theirs["nominatedNode"] and ours["deleted"] != (theirs.get("deleted") or []):
        yield Difference("postFilter.deleted", node, ours["deleted"], theirs.get("deleted"))
    for name in sorted({*candidates, *ours["candidates"]}):
        one, other = ours["candidates"].get(name), candidates.get(name)
        if one != other and not (theirs.get("sampled") and one is None):
            yield Difference("postFilter.candidate", name, one, other)
