"""Why a pod is not on a node, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mooring.explain.decision_words import Evidence
from mooring.explain.recomputed_words import CHANGES_APART, aligned, caveats, change_lines


def why_not_in_full(found: Evidence) -> str:
    """For `mooring why-not`."""
    return "\n".join(_lines(found))


def _lines(found: Evidence) -> Iterator[str]:
    yield _first(found)
    yield f"  Recomputed with profile {found['profile']}{_as_if(found)}."
    yield from caveats(found["scheduler"], found)
    yield ""
    yield f"Filters on {found['node']} (one that skips has nothing to do with this pod):"
    width = max(len(each["plugin"]) for each in found["filters"]) if found["filters"] else 0
    for plugin, verdict, why in map(_verdict, found["filters"]):
        yield f"  {plugin:<{width}}  {verdict:<7}  {why}".rstrip()
    yield from _scores(found)
    yield from _changes(found)


def _first(found: Evidence) -> str:
    pod, node, chosen, runs_on = found["pod"], found["node"], found["chosen"], found["runsOn"]
    if runs_on == node:
        return f"Pod {pod} runs on {node}."
    if not found["isFeasible"]:
        missing = found.get("missing") or ["is rejected"]
        return f"Pod {pod} cannot run on {node}: it {', and it '.join(missing)}."
    if (gating := found.get("gating")) is not None:
        kept_out = f"is kept out of the queue by {gating['plugin']} ({'; '.join(gating['reasons'])})"
        return f"Pod {pod} {kept_out}; without that it would {'' if chosen == node else 'fit '}{_goes_to(found)}."
    if chosen == node:
        where = f"runs on {runs_on}" if runs_on else "waits for a node"
        return f"Pod {pod} {where}, and would go to {node} if it were decided now."
    return f"Pod {pod} fits {node}, but {runs_on or chosen} has a higher score{_ahead(found)}."


def _goes_to(found: Evidence) -> str:
    node, chosen = found["node"], found["chosen"]
    return f"go to {node}" if chosen == node else f"{node}, but go to {chosen}"


def _ahead(found: Evidence) -> str:
    rows: Sequence[Evidence] = (found.get("scores") or {}).get("nodes") or []
    if len(rows) != 2:
        return ""
    margin = rows[1]["total"] - rows[0]["total"]
    if margin > 0:
        return f" by {margin} point{'s' * (margin != 1)}"
    return ", or had when it was decided" if margin < 0 else ", or an equal one: among equals the scheduler takes turns"


def _as_if(found: Evidence) -> str:
    if not found["runsOn"]:
        return ""
    now = found["chosen"]
    goes = f"it would go to {now}" if now else "it would fit no node"
    return f", as if it were not bound to {found['runsOn']} yet: {goes}"


def _verdict(each: Evidence) -> tuple[str, str, str]:
    why = "; ".join(each.get("reasons", ()))
    if each.get("isAmongNominated"):
        why += " (with the pods that are nominated to it)"
    return each["plugin"], each["verdict"], why


def _scores(found: Evidence) -> Iterator[str]:
    if fault := found.get("scoreFault"):
        yield ""
        yield f"It cannot be scored: {fault}"
        return
    scores = found["scores"]
    rows = scores["nodes"]
    others = "" if found["isFeasible"] else ", as if filters had accepted it"
    yield ""
    yield f"Scores as RAW/OF 100/WEIGHTED, beside {scores['scoredNodes'] - 1} other nodes{others}:"
    cells = [["PLUGIN", *(row["node"] for row in rows), *(["AHEAD"] if len(rows) == 2 else [])]]
    for place, score in enumerate(rows[0]["scores"]):
        cells.append([f"{score['plugin']} ×{score['weight']}", *_row(found, place)])
    totals = [row["total"] for row in rows]
    cells.append(["total", *map(str, totals), *([f"{totals[0] - totals[1]:+}"] if len(rows) == 2 else [])])
    yield from aligned(cells)


def _row(found: Evidence, place: int) -> list[str]:
    scores = [row["scores"][place] for row in found["scores"]["nodes"]]
    cells = [f"{each['raw']}/{each['normalized']}/{each['weighted']}" for each in scores]
    if len(scores) == 2:
        cells.append(f"{scores[0]['weighted'] - scores[1]['weighted']:+}")
    return cells


def _changes(found: Evidence) -> Iterator[str]:
    if "changes" not in found:
        return
    yield ""
    if not found["changes"]:
        yield f"No change that is known here would bring it to {found['node']}."
        return
    yield f"What would bring it to {found['node']}? {CHANGES_APART}"
    yield from change_lines(found["changes"], "  ", found["node"])
