"""Charts of one run or several, by one word."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring.base.errors import OperatorMistake, did_you_mean
from mooring.simulator.charts import COUNT, SECONDS, SHARE, Axis, Chart, bar_chart, cdf_chart, histogram, line_chart
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.usage import Sample

Results = Mapping[str, SimulationResult]

TIME = Axis(SECONDS, "simulated time")


def plot(results: Results, what: str, resource: str = "cpu") -> Chart:
    """A chart of these results, a series for each."""
    if (draw := PLAIN.get(what)) is not None:
        return draw(results)
    if what not in BY_RESOURCE:
        known = [*BY_RESOURCE, *PLAIN]
        raise OperatorMistake(f'There is no chart "{what}".{did_you_mean(what, known)} There are: {", ".join(known)}.')
    offered = {name for result in results.values() for name in result.use}
    if resource not in offered:
        hint = did_you_mean(resource, sorted(offered))
        raise OperatorMistake(f'No node offers the resource "{resource}".{hint}')
    return BY_RESOURCE[what](results, resource)


def _over_time(results: Results, title: str, y: Axis, value: Callable[[Sample], float | None]) -> Chart:
    series = {
        name or "run": [(sample.at, number) for sample in result.timeline if (number := value(sample)) is not None]
        for name, result in results.items()
    }
    return line_chart(title, series, x=TIME, y=y, is_stepped=True)


def _utilisation(results: Results, resource: str) -> Chart:
    axis = Axis(SHARE, "share of what nodes offer")
    return _over_time(results, f"{resource} requested", axis, lambda sample: sample.requested.get(resource))


def _fragmentation(results: Results, resource: str) -> Chart:
    axis = Axis(SHARE, "share of what is free, where a typical pod does not fit")
    return _over_time(results, f"{resource} fragmentation", axis, lambda sample: sample.fragmentation.get(resource))


def _imbalance(results: Results, resource: str) -> Chart:
    axis = Axis(SHARE, "standard deviation over nodes")
    return _over_time(results, f"{resource} imbalance", axis, lambda sample: sample.imbalance.get(resource))


def _pending(results: Results) -> Chart:
    return _over_time(results, "Pending pods", Axis(COUNT), lambda sample: sample.pending)


def _running(results: Results) -> Chart:
    return _over_time(results, "Running pods", Axis(COUNT), lambda sample: sample.running)


def _waits(results: Results) -> dict[str, list[float]]:
    return {
        name or "run": [seconds for pod in result.pods if (seconds := pod.waited_seconds) is not None]
        for name, result in results.items()
    }


def _waiting(results: Results) -> Chart:
    return cdf_chart("Waiting from arrival to binding", _waits(results), x=Axis(SECONDS), y_label="share of bound pods")


def _waiting_histogram(results: Results) -> Chart:
    return histogram("Waiting from arrival to binding", _waits(results), x=Axis(SECONDS), y_label="bound pods")


def _influence(results: Results) -> Chart:
    bars = {
        name or "run": {each.plugin: float(each.decided) for each in result.influence if each.scored}
        for name, result in results.items()
    }
    return bar_chart("Placements that a score decided", bars, x=Axis(COUNT))


def _rejections(results: Results) -> Chart:
    bars = {
        name or "run": {each.plugin: float(each.last) for each in result.influence if each.rejecting}
        for name, result in results.items()
    }
    return bar_chart("Attempts without a node, by last obstacle", bars, x=Axis(COUNT))


BY_RESOURCE: Mapping[str, Callable[[Results, str], Chart]] = {
    "utilisation": _utilisation,
    "fragmentation": _fragmentation,
    "imbalance": _imbalance,
}
PLAIN: Mapping[str, Callable[[Results], Chart]] = {
    "pending": _pending,
    "running": _running,
    "waiting": _waiting,
    "waiting-histogram": _waiting_histogram,
    "influence": _influence,
    "rejections": _rejections,
}
