"""Several runs of one cluster and one workload side by side, and why pods go elsewhere.

The first is the baseline of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mooring.framework import FeatureGates
from mooring.framework.registry import Registry
from mooring.recording import Recorder
from mooring.scheduler.wiring import ATTEMPT_TIMEOUT_SECONDS
from mooring.simulator.configurations import AnyConfiguration, PluginSource, configured, registry_of
from mooring.simulator.move_explainer import Baseline
from mooring.simulator.moves import Move, MoveCount, counted_moves
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.scenario import Arrival, Cluster
from mooring.simulator.simulation import Progress, Ties, simulate

if TYPE_CHECKING:
    from mooring.simulator.charts import Chart


class SimulationComparison:
    """Results by name; the first is the baseline."""

    def __init__(self, results: Mapping[str, SimulationResult]) -> None:
        if not results:
            raise ValueError("a comparison needs at least one result")
        self.results = dict(results)

    @property
    def baseline(self) -> str:
        return next(iter(self.results))

    @property
    def others(self) -> dict[str, SimulationResult]:
        return dict(list(self.results.items())[1:])

    def summary(self) -> dict[str, dict[str, float | int | None]]:
        """The figures of each run, by name."""
        return {name: result.summary() for name, result in self.results.items()}

    def moves(self, name: str) -> list[Move]:
        """The pods that go elsewhere in this run than in the baseline. Without a cause, where it was run by itself."""
        result = self.results[name]
        if result.moves or name == self.baseline:
            return result.moves
        moved = self.results[self.baseline].moved(result)
        return [Move(here.key, there.arrived_at, here.node, there.node, "") for here, there in moved]

    def causes(self, name: str) -> list[MoveCount]:
        """How many pods each plugin moved."""
        return counted_moves(self.moves(name))

    def first_move(self, name: str) -> Move | None:
        """Until then both runs are alike: its cause is the configuration alone."""
        return min(self.moves(name), key=lambda move: move.at, default=None)

    def __repr__(self) -> str:
        return f"<comparison of {', '.join(f'{name}: {result!r}' for name, result in self.results.items())}>"

    def _repr_html_(self) -> str:
        from mooring.simulator.html_report import comparison_fragment

        return comparison_fragment(self)

    def summary_frame(self) -> Any:
        """A polars DataFrame with a row for each run."""
        from mooring.simulator.tables import summary_table

        return summary_table(self.results).frame()

    def moves_frame(self) -> Any:
        """A polars DataFrame with a row for each pod and run that goes elsewhere than in the baseline."""
        from mooring.simulator.tables import moves_table

        return moves_table(self.results).frame()

    def plot(self, what: str, *, resource: str = "cpu") -> Chart:
        """A chart of all runs; `what` as for `SimulationResult.plot`."""
        from mooring.simulator.plots import plot

        return plot(self.results, what, resource)


def compare(results: Mapping[str, SimulationResult]) -> SimulationComparison:
    """Results that are there already, by name. `simulate_each` also explains their differences."""
    return SimulationComparison(results)


def simulate_each(
    cluster: Cluster,
    workload: Sequence[Arrival],
    configurations: Mapping[str, AnyConfiguration],
    *,
    plugins: Sequence[PluginSource] = (),
    registry: Registry | None = None,
    gates: FeatureGates | None = None,
    ties: Ties = None,
    attempt_timeout: float = ATTEMPT_TIMEOUT_SECONDS,
    progress: Mapping[str, Progress] | None = None,
    on_end: Callable[[str], None] | None = None,
    recorder: Recorder | None = None,
) -> SimulationComparison:
    """Run the workload with each of these configurations, and explain which pods go elsewhere than with the first.

    Ctrl-C ends the run that it meets and leaves out those after it. `on_end` is called after each run.
    A `recorder` gets what happens in the first run.
    """
    results: dict[str, SimulationResult] = {}
    baseline: Baseline | None = None
    for name, configuration in configurations.items():
        known = registry if registry is not None else registry_of(plugins, configuration)
        loaded = configured(configuration, known, plugins, gates)
        results[name] = simulate(
            cluster,
            workload,
            loaded,
            registry=known,
            gates=gates,
            ties=ties,
            attempt_timeout=attempt_timeout,
            baseline=baseline,
            progress=(progress or {}).get(name),
            recorder=recorder if not results else None,
        )
        if on_end is not None:
            on_end(name)
        if results[name].is_interrupted:
            break
        baseline = baseline or Baseline(results[name].pods, loaded, known)
    return SimulationComparison(results)
