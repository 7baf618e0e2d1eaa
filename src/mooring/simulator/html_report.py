"""One HTML page about a run or several: figures, plots, pending pods, moves and plugins.

It needs no network and no script, follows the colour scheme of the reader, and has the same bytes for the same runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.base.earlier_output import head_of
from mooring.base.errors import OperatorMistake
from mooring.simulator.charts import palette
from mooring.simulator.figures import Results, duration, fault_lines, figure_rows, headline, requested_resources
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.plots import BY_RESOURCE, plot

if TYPE_CHECKING:
    from mooring.simulator.comparison import SimulationComparison
    from mooring.simulator.scenario import Cluster, Workload

MOST_ROWS = 20

_FRAGMENT = "mooring-report"
_STYLE = palette(f".{_FRAGMENT}") + "".join(
    f".{_FRAGMENT} {rule}"
    for rule in (
        "table{border-collapse:collapse;margin:.4rem 0 1rem;font-size:.875rem;font-variant-numeric:tabular-nums}",
        "th,td{padding:.25rem .75rem .25rem 0;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule);"
        "white-space:nowrap}",
        "td:last-child:not(.n){white-space:normal;overflow-wrap:anywhere}",
        "th{color:var(--quiet);font-weight:600}",
        "td.n,th.n{text-align:right;white-space:nowrap}",
        ".charts{display:flex;flex-wrap:wrap;gap:1rem}",
        ".charts svg{flex:1 1 28rem;border:1px solid var(--rule);border-radius:6px}",
        ".notice{padding:.6rem .9rem;border-left:4px solid var(--c4);background:var(--surface)}",
        # A shadow at the edge beyond which there is more.
        ".scroll{overflow-x:auto;background:linear-gradient(to right,var(--surface) 30%,transparent) 0 0/36px 100% "
        "no-repeat local,linear-gradient(to left,var(--surface) 30%,transparent) 100% 0/36px 100% no-repeat local,"
        "linear-gradient(to right,var(--quiet),transparent) 0 0/10px 100% no-repeat scroll,"
        "linear-gradient(to left,var(--quiet),transparent) 100% 0/10px 100% no-repeat scroll}",
        "p.quiet{color:var(--quiet);font-size:.875rem}",
    )
)
_PAGE = (
    f"body{{margin:0;background:var(--surface)}}{palette('body')}"
    f".{_FRAGMENT}{{max-width:76rem;margin:0 auto;padding:1.5rem;color:var(--ink);background:var(--surface);"
    "font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,sans-serif}"
    "h1{font-size:1.6rem}h2{font-size:1.2rem;margin-top:2rem}h3{font-size:1rem;margin:1rem 0 .2rem}"
)


_MARK = '<meta name="generator" content="Mooring">'
_ONLY_ITSELF = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
"""The Content-Security-Policy: it loads nothing and runs nothing, also where text of a pod were not escaped."""


def page(comparison: SimulationComparison, title: str = "Simulation") -> str:
    """A whole document."""
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{_ONLY_ITSELF}">{_MARK}'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="light dark"><title>{escape(title)}</title>'
        f"<style>:root{{color-scheme:light dark}}{_PAGE}{_STYLE}</style>"
    )
    names = ", ".join(comparison.results)
    return (
        f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body><main class="{_FRAGMENT}">'
        f'<h1>{escape(title)}</h1><p class="quiet">{escape(names)}</p>{_body(comparison)}</main></body></html>\n'
    )


def is_report(path: str) -> bool:
    """Whether `write_page` wrote it."""
    return _MARK.encode() in head_of(path)


def write_page(path: str | Path, comparison: SimulationComparison, title: str = "Simulation") -> None:
    """Whole or not at all."""
    from mooring.base.files import write_private

    try:
        write_private(Path(path), page(comparison, title))
    except OSError as error:
        raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error


def result_fragment(result: SimulationResult) -> str:
    """A result in a notebook: figures, pending pods, and two charts."""
    results = {"run": result}
    parts = [_notices(results), _table(["", "value"], figure_rows(results), numbers=(1,))]
    parts += _pending(results)
    return _fragment([*parts, _charts(results, ("utilisation", "waiting"))])


def comparison_fragment(comparison: SimulationComparison) -> str:
    """A comparison in a notebook: figures side by side, and why pods moved."""
    results = comparison.results
    numbers = range(1, 1 + len(results))
    parts = [_notices(results), _table(["", *results], figure_rows(results), numbers=numbers)]
    return _fragment([*parts, *_moves(comparison), _charts(results, ("utilisation", "waiting"))])


def cluster_fragment(cluster: Cluster) -> str:
    """A cluster in a notebook: how many nodes of each size, and their pods."""
    kinds: dict[tuple[str, ...], int] = {}
    for node in cluster.nodes:
        offered = node.status.allocatable
        kind = tuple(f"{offered[name]} {name}" for name in sorted(offered) if name in ("cpu", "memory") or "/" in name)
        kinds[kind] = kinds.get(kind, 0) + 1
    running = sum(1 for pod in cluster.pods if pod.spec.node_name)
    counts = f"{len(cluster.nodes):,} nodes, {running:,} running pods, {len(cluster.pods) - running:,} pending pods"
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    rows = [[f"{count:,}", ", ".join(kind)] for kind, count in ordered]
    return _fragment([f"<p><strong>Cluster</strong>: {counts}</p>", _limited(["nodes", "offer each"], rows, (0,))])


def workload_fragment(workload: Workload) -> str:
    """A workload in a notebook: how many pods, when, and what they request most often."""
    sizes: dict[tuple[tuple[str, int], ...], int] = {}
    for arrival in workload:
        size = tuple(sorted(arrival.pod.requests.amounts.items()))
        sizes[size] = sizes.get(size, 0) + 1
    last = max((arrival.at for arrival in workload), default=0.0)
    ending = sum(1 for arrival in workload if arrival.duration is not None)
    counts = f"{len(workload):,} pods within {duration(last)}, of which {ending:,} end"
    rows = [
        [f"{count:,}", ", ".join(f"{_amount(name, amount)} {name}" for name, amount in size) or "nothing"]
        for size, count in sorted(sizes.items(), key=lambda item: (-item[1], item[0]))
    ]
    return _fragment([f"<p><strong>Workload</strong>: {counts}</p>", _limited(["pods", "request each"], rows, (0,))])


def _amount(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{amount}m" if amount % 1000 else f"{amount // 1000}"
    for size, unit in ((2**30, "Gi"), (2**20, "Mi"), (2**10, "Ki")):
        if amount and not amount % size:
            return f"{amount // size}{unit}"
    return f"{amount}"


# Parts


def _fragment(parts: Iterable[str]) -> str:
    return f'<div class="{_FRAGMENT}"><style>{_STYLE}</style>{"".join(parts)}</div>'


def _body(comparison: SimulationComparison) -> str:
    results = comparison.results
    numbers = range(1, 1 + len(results))
    parts = [_notices(results), "<h2>Figures</h2>", _table(["", *results], figure_rows(results), numbers=numbers)]
    parts += _moves(comparison)
    parts += ["<h2>Over time</h2>", _charts(results, ("utilisation", "fragmentation", "imbalance"))]
    parts.append(_charts(results, ("running", "pending", "waiting", "waiting-histogram")))
    if pending := _pending(results):
        parts += ["<h2>Pending pods</h2>", *pending]
    parts += ["<h2>Plugins</h2>", _charts(results, ("influence", "rejections")), *_influence(results)]
    parts += [*_evictions(results), *_spread(results)]
    return "".join(parts)


def _notices(results: Results) -> str:
    lines = [text for name, result in results.items() if (text := headline(name, result))]
    for name, result in results.items():
        lines += fault_lines(name, result)
    return "".join(f'<p class="notice">{escape(line)}</p>' for line in lines)


def _charts(results: Results, which: Sequence[str]) -> str:
    resources = requested_resources(results) or ["cpu"]
    drawn = []
    for what in which:
        drawn += [plot(results, what, each).svg for each in (resources if what in BY_RESOURCE else resources[:1])]
    return f'<div class="charts">{"".join(drawn)}</div>'


def _pending(results: Results) -> list[str]:
    parts = []
    for name, result in results.items():
        if reasons := result.pending_reasons:
            rows = [[f"{count:,}", reason] for reason, count in reasons]
            parts += [f"<h3>Never bound: {escape(name)}</h3>", _limited(["pods", "reason"], rows, (0,))]
    return parts


def _moves(comparison: SimulationComparison) -> list[str]:
    parts = []
    for name in comparison.others:
        moves, pods = comparison.moves(name), len(comparison.results[name].pods)
        parts.append(f"<h2>{escape(name)} against {escape(comparison.baseline)}</h2>")
        parts.append(f"<p>{len(moves):,} of {pods:,} pods go elsewhere.</p>")
        first = comparison.first_move(name)
        if first is None:
            continue
        if first.cause:
            where = f"{first.before or 'no node'} → {first.after or 'no node'}"
            explained = f"{first.pod} after {duration(first.at)}: {where}. {first.explained()}."
            parts.append(f"<p>The first is {escape(explained)} Until then both runs are alike.</p>")
        rows = [
            [
                f"{each.pods:,}",
                each.cause or "not explained",
                each.plugin,
                "; ".join(m.explained() for m in each.examples),
            ]
            for each in comparison.causes(name)
        ]
        parts.append(_table(["pods", "moved by", "plugin", "for example"], rows, numbers=(0,)))
        shown = [
            [move.pod, move.before or "-", move.after or "-", move.explained() if move.cause else ""] for move in moves
        ]
        parts.append(_limited(["pod", comparison.baseline, name, "why"], shown))
    return parts


def _influence(results: Results) -> list[str]:
    parts = []
    for name, result in results.items():
        if not result.influence:
            continue
        rows = [
            [
                each.plugin,
                *(
                    f"{value:,}"
                    for value in (
                        each.scored,
                        each.decided,
                        each.rejecting,
                        each.rejected_nodes,
                        each.last,
                        each.alone,
                    )
                ),
            ]
            for each in result.influence
        ]
        headings = ["plugin", "scored", "decided", "rejecting", "nodes rejected", "last obstacle", "alone"]
        parts += [f"<h3>{escape(name)}</h3>", _table(headings, rows, numbers=range(1, 7))]
    if parts:
        parts.append(
            '<p class="quiet">Scored: placements in which the scores were not the same for all nodes; decided: in '
            "which other nodes would be among the best without them. Rejecting: attempts in which nodes were rejected; "
            "last obstacle: attempts without a node, in which the nodes that came furthest were rejected.</p>"
        )
    return parts


def _evictions(results: Results) -> list[str]:
    parts = []
    for name, result in results.items():
        if result.evictions:
            rows = [[duration(each.at), each.preemptor or "-", each.victim, each.node] for each in result.evictions]
            parts += [f"<h2>Preempted: {escape(name)}</h2>", _limited(["after", "pod", "victim", "node"], rows)]
    return parts


def _spread(results: Results) -> list[str]:
    parts = []
    for name, result in results.items():
        if result.spread:
            ordered = sorted(result.spread, key=lambda each: (-each.pods, each.owner))
            rows = [
                [
                    each.owner,
                    *(f"{n:,}" for n in (each.pods, each.nodes, each.most_on_node, each.zones, each.zone_skew)),
                ]
                for each in ordered
            ]
            headings = ["owner", "pods at a time", "nodes", "most on a node", "zones", "zone skew"]
            parts += [f"<h2>Spread: {escape(name)}</h2>", _limited(headings, rows, range(1, 6))]
    return parts


def _limited(headings: Sequence[str], rows: Sequence[Sequence[str]], numbers: Iterable[int] = ()) -> str:
    shown = _table(headings, rows[:MOST_ROWS], numbers=numbers)
    left = len(rows) - MOST_ROWS
    return shown if left <= 0 else f'{shown}<p class="quiet">…and {left:,} more.</p>'


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    right, numeric = set(numbers), ' class="n"'

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f"<{tag}{numeric if place in right else ''}>{escape(text)}</{tag}>" for place, text in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{cells("th", headings)}</tr></thead><tbody>{body}</tbody></table></div>'
    )
