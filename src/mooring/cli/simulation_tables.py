"""What came out of simulations, as tables and as a JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mooring.cli.output import print_line, print_table

if TYPE_CHECKING:
    from mooring.simulator import SimulationComparison, SimulationResult

MOST_REASONS, MOST_MOVED, MOST_EVICTIONS = 5, 10, 5


def print_comparison(comparison: SimulationComparison) -> None:
    """Figures side by side, pending pods with reasons, which plugins decided, and why pods go elsewhere."""
    from mooring.simulator.figures import fault_lines, figure_rows, headline

    results = comparison.results
    for name, result in results.items():
        if line := headline(name, result):
            print_line(line)
        for line in fault_lines(name, result):
            print_line(line)
    print_table("Simulated", ["", *results], figure_rows(results))
    for name, result in results.items():
        if reasons := result.pending_reasons:
            shown = [[f"{count:,}", why] for why, count in reasons[:MOST_REASONS]]
            print_table(f"Pending with {name}", ["pods", "reason"], shown)
        _print_evictions(name, result)
    _print_influence(comparison)
    for name in comparison.others:
        _print_moves(comparison, name)


def _print_evictions(name: str, result: SimulationResult) -> None:
    from mooring.simulator.figures import duration

    if result.evictions:
        shown = [[duration(each.at), each.victim, each.node, each.preemptor or "-"] for each in result.evictions]
        title = f"Preempted with {name}: {len(shown):,} pods"
        print_table(title, ["after", "victim", "node", "makes room for"], shown[:MOST_EVICTIONS])


def _print_influence(comparison: SimulationComparison) -> None:
    by_name = {name: {each.plugin: each for each in result.influence} for name, result in comparison.results.items()}
    plugins = sorted({plugin for each in by_name.values() for plugin in each})
    if not plugins:
        return
    rows = []
    for plugin in plugins:
        cells = []
        for each in by_name.values():
            found = each.get(plugin)
            cells.append("-" if found is None else f"{found.decided:,} / {found.rejected_nodes:,} / {found.last:,}")
        rows.append([plugin, *cells])
    title = "Plugins: placements decided / nodes rejected / times the last obstacle"
    print_table(title, ["", *by_name], rows)


def _print_moves(comparison: SimulationComparison, name: str) -> None:
    from mooring.simulator.figures import duration

    first, moves = comparison.baseline, comparison.moves(name)
    pods = len(comparison.results[name].pods)
    title = f"On another node with {name} than with {first}: {len(moves):,} of {pods:,} pods"
    if not moves:
        print_line()
        print_line(title)
        return
    rows = [
        [f"{each.pods:,}", f"{each.cause} {each.plugin}".strip(), each.examples[0].explained()]
        for each in comparison.causes(name)
    ]
    print_table(title, ["pods", "moved by", "for example"], rows)
    beginning = min(moves, key=lambda move: move.at)
    print_line(f"Until {beginning.pod}, {duration(beginning.at)} after the beginning, both runs are alike.")
    shown = [[move.pod, move.before or "-", move.after or "-", move.explained()] for move in moves[:MOST_MOVED]]
    print_table("The first of them", ["pod", first, name, "why"], shown)


def document_of(comparison: SimulationComparison) -> dict[str, Any]:
    """Everything, by configuration."""
    import msgspec

    documents = {}
    for name, result in comparison.results.items():
        document: dict[str, Any] = msgspec.to_builtins(result)
        reasons = [{"reason": why, "pods": count} for why, count in result.pending_reasons]
        documents[name] = {"summary": result.summary(), "pendingReasons": reasons, **document}
        if name != comparison.baseline:
            documents[name]["movedBy"] = [
                {"cause": each.cause, "plugin": each.plugin, "pods": each.pods} for each in comparison.causes(name)
            ]
    return documents
