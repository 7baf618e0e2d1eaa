"""A decision that was taken for the explanation, in words: scores of all nodes, nearest misses, what changed since."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from mooring.base.documents import written
from mooring.explain.decision_words import Evidence, despite_eviction, feasible, refused_lines

SHOWN_NODES = 5
SAME = "the same for every node"
CHANGES_APART = "Each was verified by deciding again."


def recomputation_lines(found: Evidence, recomputed: Evidence, is_wide: bool) -> Iterator[str]:
    """Beside the decision of the scheduler, if that is known."""
    if "decision" in recomputed or "gating" in recomputed:
        yield ""
        yield f"Recomputed {_how(found, recomputed)}:"
        yield from caveats(found["profile"], recomputed)
    if gating := recomputed.get("gating"):
        yield f"  {gating['plugin']} keeps it out of the queue: {'; '.join(gating['reasons'])}"
    elif found["node"]:
        yield from _bound(found, recomputed)
    elif "decision" in recomputed:
        yield from _pending(found, recomputed)
    if (table := recomputed.get("table")) is not None:
        yield ""
        yield from table_lines(table, is_wide)
    if nearest := recomputed.get("nearest"):
        yield ""
        yield f"What would help? {CHANGES_APART}"
        yield from nearest_lines(nearest)


def caveats(scheduler: str, recomputed: Evidence) -> Iterator[str]:
    """What the recomputation does not know."""
    if recomputed.get("isOtherScheduler"):
        yield f"  The pod names scheduler {scheduler}; this is by the rules of {recomputed['profile']}."
    if recomputed.get("lacksExtenders"):
        yield "  The extenders of the configuration were not called."
    if recomputed.get("lacksGroup"):
        yield "  The other members of its group were not tried with it."
    yield from (f"  {note}" for note in recomputed.get("notes", ()))


def _how(found: Evidence, recomputed: Evidence) -> str:
    of = "the cluster of the file" if found.get("isFile") else "the cluster as the API server shows it now"
    as_if = ", as if it were not bound yet" if found["node"] else ""
    return f"with profile {recomputed['profile']} on {of}{as_if}"


def _pending(found: Evidence, recomputed: Evidence) -> Iterator[str]:
    decision = recomputed["decision"]
    if decision.get("node") is not None:
        yield f"  It would go to {decision['node']} now: {feasible(decision, 'is')}."
        if second := recomputed.get("runnerUp"):
            yield f"  {_runner_up(second, decision['node'])}"
        return
    recorded = found.get("decision") or {}
    if recorded.get("message") == decision.get("message"):
        yield "  The same result."
        return
    yield from refused_lines(decision)


def _bound(found: Evidence, recomputed: Evidence) -> Iterator[str]:
    node, decision = found["node"], recomputed["decision"]
    own, second = recomputed.get("ownNode"), recomputed.get("runnerUp")
    now = decision.get("node")
    if own is not None and not own.get("isGone"):
        yield f"  {node} is not feasible any more ({own['plugin'] or 'pre_filter'}: {'; '.join(own['reasons'])})."
    if now is None:
        yield f"  No node is feasible: {decision.get('message', '')}"
    elif decision["feasibleNodes"] == 1 and now == node:
        yield f"  It would go to {node} again: it is the only feasible one of {decision['nodes']} nodes."
    elif own is not None or second is None:
        yield f"  It would go to {now}."
    elif second["margin"] >= 0:
        yield f"  It would {'go to' if second['margin'] else 'fit best on'} {node} again. {_runner_up(second, node)}"
    else:
        yield f"  It would go to {second['node']} now, {-second['margin']} points ahead of {node}."
    yield from _since(found, recomputed)


def _runner_up(second: Evidence, chosen: str) -> str:
    others = f" (and {second['alike'] - 1} more nodes)" if second["alike"] > 1 else ""
    if not second["margin"]:
        return f"{second['node']}{others} has the same score as {chosen}: among equals the scheduler takes turns."
    points = "point" if second["margin"] == 1 else "points"
    return f"The runner-up is {second['node']}{others}, {second['margin']} {points} behind."


def _since(found: Evidence, recomputed: Evidence) -> Iterator[str]:
    since, recorded, decision = recomputed.get("since") or {}, found.get("decision") or {}, recomputed["decision"]
    if recorded.get("node") == found["node"] and "total" in decision:
        now = f"{decision['feasibleNodes']} of {decision['nodes']} {'is' if decision['feasibleNodes'] == 1 else 'are'}"
        yield f"  When it was decided, {feasible(recorded, 'was')}; now {now}."
    if not since:
        return
    count, pods, here = since["newNodeCount"], since["newPods"], since["newPodsHere"]
    nodes = "no node was added"
    if count:
        more = f" and {count - len(since['newNodes'])} more" if count > len(since["newNodes"]) else ""
        nodes = f"{count} node{'s were' if count > 1 else ' was'} added ({', '.join(since['newNodes'])}{more})"
    bound = "no pod that is there now was bound"
    if pods:
        bound = f"{pods} pod{'s that are there now were' if pods != 1 else ' that is there now was'} bound"
        bound += f", {here} of them to {found['node']}" if pods > 1 or here else ""
    alike = since.get("podsOfTheSameSecond", 0)
    same_second = f" In the same second {alike} more pod{'s were' if alike != 1 else ' was'} bound." if alike else ""
    yield f"  Since it was bound at {since['boundAt']}, {nodes}, and {bound}.{same_second}"


def table_lines(table: Evidence, is_wide: bool) -> Iterator[str]:
    """Plugins × nodes: raw score, of 100, and with its weight."""
    rows: Sequence[Evidence] = table["nodes"]
    if is_wide or len(rows) > SHOWN_NODES + 1:
        yield from _by_node(table, rows)
        return
    places = [place for place, plugin in enumerate(table["plugins"]) if not plugin.get("isSame")]
    if places:
        yield "  Scores as RAW/OF 100/WEIGHTED:"
        cells = [["PLUGIN", *(row["node"] for row in rows)]]
        for place in places:
            plugin = table["plugins"][place]
            scores = (_cell(row["scores"][place]) for row in rows)
            cells.append([f"{plugin['plugin']} ×{plugin['weight']}", *scores])
        if len(places) < len(table["plugins"]):
            rest = str(sum(score["weighted"] for at, score in enumerate(rows[0]["scores"]) if at not in places))
            cells.append([SAME, *(rest for _ in rows)])
        cells.append(["total", *(str(row["total"]) for row in rows)])
        yield from aligned(cells)
    yield from _same_lines(table, rows)
    if (left := table["scoredNodes"] - len(rows)) > 0:
        yield f"  … and {left} more nodes: -o wide shows all."


def _same_lines(table: Evidence, rows: Sequence[Evidence]) -> Iterator[str]:
    """Plugins that give every node the same decide nothing."""
    same = [
        f"{plugin['plugin']} {rows[0]['scores'][place]['weighted']}"
        for place, plugin in enumerate(table["plugins"])
        if plugin.get("isSame")
    ]
    if same:
        yield f"  {SAME.capitalize()}: {', '.join(same)}."


def _by_node(table: Evidence, rows: Sequence[Evidence]) -> Iterator[str]:
    yield "  Scores as RAW/OF 100/WEIGHTED:"
    cells = [["NODE", "TOTAL", *(f"{plugin['plugin']} ×{plugin['weight']}" for plugin in table["plugins"])]]
    cells += [[row["node"], str(row["total"]), *map(_cell, row["scores"])] for row in rows]
    yield from aligned(cells)


def _cell(score: Evidence) -> str:
    return f"{score['raw']}/{score['normalized']}/{score['weighted']}"


def aligned(cells: Sequence[Sequence[str]]) -> Iterator[str]:
    """Columns of one width, the first one to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        padded = (f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True))
        yield f"  {first:<{widths[0]}}  {'  '.join(padded)}".rstrip()


def nearest_lines(nearest: Sequence[Evidence]) -> Iterator[str]:
    """Per group of nodes: the nearest, what it lacks, and what would do. Or what the pod itself lacks."""
    for miss in nearest:
        count = miss["count"]
        despite = despite_eviction(miss, is_one_of_two=False)
        where = f" ({count} node{'s' * (count != 1)})" if count else ""
        by = f"{miss['plugin']}: " if miss["plugin"] else ""
        yield f"  {by}{'; '.join(miss['reasons'])}{despite}{where}"
        fit = f"{miss['onlyThis']} nodes fit but for this; " if miss["onlyThis"] > 1 else ""
        nearest_is = f"nearest is {miss['node']}: " if miss["node"] else ""
        if miss["missing"]:
            yield f"    {fit}{nearest_is}it {', and it '.join(miss['missing'])}."
        yield from change_lines(miss["changes"], "    ", miss["node"])
        if not miss["changes"] and miss["node"]:
            yield "    - no change to this pod, to pods on this node or to the node is known to help"


def change_lines(changes: Sequence[Evidence], indent: str, expected: str | None) -> Iterator[str]:
    """Alternatives, each with what to paste."""
    for change in changes:
        command = f" ({change['command']})" if change.get("command") else ""
        goes = f"; then it goes to {change['node']}" if change["node"] != expected else ""
        again = "".join(f"; {created_again(each)}" for each in change.get("createdAgain", ()))
        manifest = change.get("create") or change.get("manifest")
        yield f"{indent}- {change['change']}{command}{goes}{again}{':' if manifest else ''}"
        if manifest:
            yield textwrap.indent(written(manifest).rstrip("\n"), f"{indent}    ")


def created_again(pod: Evidence) -> str:
    """What becomes of a deleted pod."""
    goes = f"goes to {pod['node']}" if pod["node"] else "waits"
    return f"{pod['owner']} creates the pod again, which then {goes}"
