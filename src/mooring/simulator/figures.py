"""The figures of runs in words: the rows of the table that the command prints and the report shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.simulator.outcome import PERCENTILES, SimulationResult

Results = Mapping[str, SimulationResult]
Figures = Mapping[str, float | int | None]


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 86_400 else f"{seconds / 86_400:.1f} d"


def figure_rows(results: Results) -> list[list[str]]:
    """A label, and the figure of each run."""
    figures = [result.summary() for result in results.values()]
    rows: dict[str, Callable[[Figures], str]] = {
        "pods": _shown("pods", _count),
        "bound": _shown("bound", _count),
        "never bound": _shown("pending", _count),
        **{f"waited {name}": _shown(f"waited_{name}", duration) for name in PERCENTILES},
        "preempted": _shown("preempted", _count),
        "attempts": _shown("attempts", _count),
        "last change after": _shown("ended_at", duration),
    }
    for resource in requested_resources(results):
        rows |= {
            f"{resource} requested, mean": _shown(f"{resource}_requested_mean", _share),
            f"{resource} requested, peak": _shown(f"{resource}_requested_peak", _share),
            f"{resource} fragmentation, mean": _shown(f"{resource}_fragmentation_mean", _share),
            f"{resource} fragmentation, end": _shown(f"{resource}_fragmentation_end", _share),
            f"{resource} imbalance, mean": _shown(f"{resource}_imbalance_mean", _share),
        }
    if any(each["spread_owners"] for each in figures):
        rows |= {
            "nodes per pod of an owner": _shown("spread_nodes_per_pod", lambda value: f"{value:.2f}"),
            "most pods of an owner on a node": _shown("spread_most_on_node", _count),
            "zone skew of an owner, max": _shown("spread_zone_skew_max", _count),
        }
    if any(each["plugin_faults"] for each in figures):
        rows["failures of plugins"] = _shown("plugin_faults", _count)
    return [[label, *(show(each) for each in figures)] for label, show in rows.items()]


def requested_resources(results: Results) -> list[str]:
    """Those of which pods requested some."""
    return list(
        dict.fromkeys(resource for result in results.values() for resource, use in result.use.items() if use.peak)
    )


def _shown(name: str, show: Callable[[float], str]) -> Callable[[Figures], str]:
    return lambda figures: "-" if (value := figures.get(name)) is None else show(value)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def headline(name: str, result: SimulationResult) -> str:
    """What has to be known before all figures; "": nothing special."""
    if result.is_interrupted:
        return f"{name} was interrupted after {duration(result.ended_at)} of simulated time: what follows is a part."
    if result.pods and not result.bound:
        [(reason, count), *others] = result.pending_reasons
        more = f" ({len(others):,} other reasons below)" if others else ""
        return f"{name}: no pod was bound. {count:,} of {len(result.pods):,} pods: {reason}{more}"
    return ""


def fault_lines(name: str, result: SimulationResult) -> list[str]:
    """Which plugins failed, where and how often."""
    lines = []
    for each in result.faults:
        often = "once" if each.count == 1 else f"{each.count:,} times"
        lines.append(f"{name}: plugin {each.plugin} failed {often} at {each.point}. {each.example}".rstrip())
    return lines
