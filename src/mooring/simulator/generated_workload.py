"""Workloads that follow from a seed: a GeneratedWorkload document.

    apiVersion: mooring.dev/v1alpha1
    kind: GeneratedWorkload
    seed: 7
    pods: 10000                  # and/or duration: 24h, for how long they arrive
    arrivals:
      process: poisson           # regular, poisson, daily, bursts
      every: 2s                  # mean time between two arrivals
    runTime: {distribution: lognormal, median: 10m, sigma: 1.2}
    classes:
    - name: web
      weight: 8
      requests: {cpu: 500m, memory: 1Gi}
      labels: {app: web}
      replicas: {least: 1, most: 5}
    - name: training
      requests: {cpu: "8", memory: 64Gi, nvidia.com/gpu: "1"}
      priority: 100
      runTime: {distribution: exponential, mean: 2h}

What arrives is a pod, or where its class has replicas, an owner with its pods at once. Times are rounded to
milliseconds, so that the last digit of a logarithm, which differs between platforms, does not show.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from mooring.base.errors import OperatorMistake, Problem
from mooring.simulated.cluster_file import GENERATED_WORKLOAD, SHORT_FORM, ClusterFile, shown
from mooring.simulated.document_fields import DocumentFields, Mistake, quoted
from mooring.simulated.seeded_random import SeededRandom, Weighted
from mooring.simulator.trace_rows import DEFAULT_NAMESPACE, TraceRow

MOST_PODS = 10_000_000
MOST_IN_BURST = 1_000_000
POD_BYTES = 2_000
"""About what a pod takes that is simulated."""
DAY = 86_400.0
DEFAULT_EVERY = 10.0
DEFAULT_RUN_TIME: dict[str, Any] = {"distribution": "exponential", "mean": 600.0}
DEFAULT_CLASSES: list[dict[str, Any]] = [
    {"name": "small", "weight": 6, "requests": {"cpu": "250m", "memory": "512Mi"}},
    {"name": "medium", "weight": 3, "requests": {"cpu": "1", "memory": "2Gi"}},
    {"name": "large", "weight": 1, "requests": {"cpu": "2", "memory": "8Gi"}},
]
"""What arrives where a document has no classes."""

Times = Iterator[float]
RunTime = Callable[[SeededRandom], float | None]


@dataclass(frozen=True)
class _PodClass:
    name: str
    weight: float
    like: TraceRow
    """What all its pods have."""
    least: int
    most: int
    is_owned: bool
    run_time: RunTime


@dataclass(frozen=True)
class _Generated:
    seed: int
    pods: int
    seconds: float
    prefix: str
    times: Callable[[SeededRandom], Times]
    classes: Sequence[_PodClass]

    def rows(self) -> Iterator[TraceRow]:
        sizes, run_times = SeededRandom(self.seed, "replicas"), SeededRandom(self.seed, "run times")
        classes, weights = SeededRandom(self.seed, "classes"), Weighted([each.weight for each in self.classes])
        made = 0
        for number, at in enumerate(self.times(SeededRandom(self.seed, "arrivals")), start=1):
            if made >= self.pods or at > self.seconds:
                return
            chosen = self.classes[weights.draw(classes)]
            size = min(sizes.whole(chosen.least, chosen.most), self.pods - made)
            made += size
            yield from self._pods(chosen, f"{self.prefix}{chosen.name}-{number}", at, size, run_times)

    def _pods(self, of: _PodClass, name: str, at: float, size: int, run_times: SeededRandom) -> Iterator[TraceRow]:
        for index in range(size):
            seconds = of.run_time(run_times)
            yield TraceRow(
                arrival=round(at, 3),
                duration=None if seconds is None else round(seconds, 3),
                name=f"{name}-{index}" if of.is_owned else name,
                namespace=of.like.namespace,
                priority=of.like.priority,
                labels=of.like.labels,
                owner=name if of.is_owned else "",
                scheduler=of.like.scheduler,
                node_selector=of.like.node_selector,
                requests=of.like.requests,
            )


def generated_rows(
    document: Mapping[str, Any], mistakes: list[Mistake], *, most: int = MOST_PODS
) -> Iterator[TraceRow]:
    """The pods of a document, made while they are read; none if there are mistakes, which are noted at once."""
    fields = DocumentFields(document, mistakes)
    for name in ("apiVersion", "kind"):
        fields.get(name)
    seed = fields.whole("seed", 0, least=-(2**63)) or 0
    pods = fields.whole("pods", least=1, most=most)
    seconds = fields.seconds("duration", is_positive=True)
    if fields.get("pods") is None and fields.get("duration") is None:
        fields.mistake("pods", "is missing: how many pods arrive, or duration: for how long they arrive")
    times, rate = _arrivals(fields.fields("arrivals"))
    if pods is None and seconds is not None and seconds * rate > most:
        fields.mistake("duration", f"has about {seconds * rate:,.0f} arrivals; at most {most:,} pods are generated")
    namespace = fields.name_part("namespace", DEFAULT_NAMESPACE)
    run_time = _run_time(fields, DEFAULT_RUN_TIME)
    listed = fields if document.get("classes") is not None else DocumentFields({"classes": DEFAULT_CLASSES}, mistakes)
    classes = [_class(each, namespace, run_time) for each in listed.items("classes")]
    if not classes and not mistakes:
        fields.mistake("classes", "is empty: at least one class of pods is needed")
    names = [each.name for each in classes]
    for name in sorted({name for name in names if name and names.count(name) > 1}):
        fields.mistake("classes", f'has two classes "{name}"; their names must differ')
    prefix = fields.name_part("namePrefix")
    fields.get("classes")
    fields.finish(GENERATED_WORKLOAD)
    if mistakes:
        return iter(())
    limits = pods or most, math.inf if seconds is None else seconds
    return _Generated(seed, *limits, prefix, times, classes).rows()


def rows_in(file: ClusterFile, *, most: int = MOST_PODS) -> Iterator[TraceRow]:
    """The pods of all GeneratedWorkloads of a file, at most `most` of each. All mistakes are reported at once, each
    with its line."""
    parts, problems = [], []
    for document in file.initial.workloads:
        mistakes: list[Mistake] = []
        parts.append(generated_rows(document, mistakes, most=most))
        problems += file.problems_in(document, mistakes)
    file.refuse(problems)
    return chain.from_iterable(parts)


def rows_of_fields(**fields: Any) -> Iterator[TraceRow]:
    """The pods of a document with these fields, where they are not None. Mistakes are an OperatorMistake."""
    version, _ = SHORT_FORM
    mistakes: list[Mistake] = []
    document = {"apiVersion": version, "kind": GENERATED_WORKLOAD}
    rows = generated_rows({**document, **{key: each for key, each in fields.items() if each is not None}}, mistakes)
    if mistakes:
        raise OperatorMistake.found_in("The generated workload", [Problem(shown(path), why) for path, why in mistakes])
    return rows


# When pods arrive


def _arrivals(fields: DocumentFields) -> tuple[Callable[[SeededRandom], Times], float]:
    """The times of arrivals, and how many there are in a second."""
    process = fields.choice("process", tuple(_PROCESSES), "poisson")
    every = fields.seconds("every", DEFAULT_EVERY, is_positive=True) or DEFAULT_EVERY
    made = _PROCESSES[process](fields, every)
    fields.finish(f"arrivals of the process {process}")
    return made


def _regular(_: DocumentFields, every: float) -> tuple[Callable[[SeededRandom], Times], float]:
    def times(_: SeededRandom) -> Times:
        number = 0
        while True:
            yield number * every
            number += 1

    return times, 1 / every


def _poisson(_: DocumentFields, every: float) -> tuple[Callable[[SeededRandom], Times], float]:
    def times(stream: SeededRandom) -> Times:
        now = 0.0
        while True:
            now += stream.exponential(every)
            yield now

    return times, 1 / every


def _daily(fields: DocumentFields, every: float) -> tuple[Callable[[SeededRandom], Times], float]:
    """Poisson, with a rate that is highest at a time of the day; it begins at midnight."""
    peak = fields.seconds("peak", 14 * 3600.0) or 0.0
    amplitude = fields.number("amplitude", 0.8, most=1.0)

    def times(stream: SeededRandom) -> Times:
        now = 0.0
        while True:
            # Candidates come at the highest rate; those above the curve are dropped.
            now += stream.exponential(every / (1 + amplitude))
            curve = 1 + amplitude * math.cos(2 * math.pi * (now - peak) / DAY)
            if stream.uniform() * (1 + amplitude) < curve:
                yield now

    return times, 1 / every


def _bursts(fields: DocumentFields, every: float) -> tuple[Callable[[SeededRandom], Times], float]:
    """Bursts come as Poisson arrivals do, and have several arrivals within some time."""
    least, most = _range(fields, "size", (10, 10), limit=MOST_IN_BURST)
    spread = fields.seconds("spread", 0.0) or 0.0

    def times(stream: SeededRandom) -> Times:
        now = 0.0
        while True:
            now += stream.exponential(every)
            yield from sorted(now + spread * stream.uniform() for _ in range(stream.whole(least, most)))

    return times, most / every


_PROCESSES: dict[str, Callable[[DocumentFields, float], tuple[Callable[[SeededRandom], Times], float]]] = {
    "poisson": _poisson,
    "regular": _regular,
    "daily": _daily,
    "bursts": _bursts,
}


# What arrives, and how long it runs


def _class(fields: DocumentFields, namespace: str, run_time: RunTime) -> _PodClass:
    name = fields.name_part("name")
    if not name and fields.get("name") in (None, ""):
        fields.mistake("name", "is missing: it begins the names of the pods")
    least, most = _range(fields, "replicas", (1, 1))
    made = _PodClass(
        name=name,
        weight=fields.number("weight", 1.0, is_positive=True),
        like=TraceRow(
            0.0,
            namespace=fields.name_part("namespace", namespace),
            priority=fields.whole("priority", least=-(2**31) + 1, most=2**31 - 1),
            labels={key: value for key, (value,) in fields.labels("labels").items()},
            scheduler=fields.text("scheduler"),
            node_selector=fields.labels("nodeSelector", are_lists=True),
            requests=fields.quantities("requests"),
        ),
        least=least,
        most=most,
        is_owned=fields.get("replicas") is not None,
        run_time=_run_time(fields, None) or run_time,
    )
    fields.finish("a class of pods")
    return made


def _range(fields: DocumentFields, name: str, default: tuple[int, int], *, limit: int = MOST_PODS) -> tuple[int, int]:
    """A whole number, or `{least: 1, most: 8}`."""
    if not isinstance(fields.get(name), Mapping):
        number = fields.whole(name, None, least=1, most=limit)
        return default if number is None else (number, number)
    part = fields.fields(name)
    least = part.whole("least", 1, least=1, most=limit) or 1
    most = part.whole("most", None, least=1, most=limit)
    if most is None and part.get("most") is None:
        part.mistake("most", "is missing")
    elif most is not None and most < least:
        part.mistake("most", f"must be at least {least}, the value of least, got {most}")
    part.finish("a range")
    return least, most or least


def _run_time(fields: DocumentFields, default: dict[str, Any] | None) -> Any:
    """A distribution, a duration, or `forever`; None: there is none, and no default."""
    value = fields.get("runTime")
    if value is None:
        value = default
        if value is None:
            return None
        return _DISTRIBUTIONS[value["distribution"]](DocumentFields(value, []))
    if value == "forever":
        return _always(None)
    if not isinstance(value, Mapping):
        seconds = fields.seconds_of("runTime", value, 0.0)
        return _always(seconds)
    part = fields.fields("runTime")
    if part.get("distribution") is None:
        part.mistake("distribution", f"is missing: one of {', '.join(_DISTRIBUTIONS)}, got {quoted(None)}")
    name = part.choice("distribution", tuple(_DISTRIBUTIONS), "fixed")
    made = _DISTRIBUTIONS[name](part)
    part.finish(f"a run time of the distribution {name}")
    return made


def _always(seconds: float | None) -> RunTime:
    return lambda _: seconds


def _needed(fields: DocumentFields, name: str) -> float:
    if fields.get(name) is None:
        fields.mistake(name, "is missing: a duration such as 90s or 1h30m")
    return fields.seconds(name) or 0.0


def _fixed(fields: DocumentFields) -> RunTime:
    seconds = _needed(fields, "value")
    return _always(seconds)


def _exponential(fields: DocumentFields) -> RunTime:
    mean = _needed(fields, "mean")
    return lambda stream: stream.exponential(mean)


def _lognormal(fields: DocumentFields) -> RunTime:
    median, sigma = _needed(fields, "median"), fields.number("sigma", 1.0, most=10.0)
    return lambda stream: median * math.exp(sigma * stream.normal())


def _uniform(fields: DocumentFields) -> RunTime:
    least, most = _needed(fields, "least"), _needed(fields, "most")
    if most < least:
        fields.mistake("most", f"must be at least the value of least, {least:g} s")
    return lambda stream: least + (most - least) * stream.uniform()


_DISTRIBUTIONS: dict[str, Callable[[DocumentFields], RunTime]] = {
    "fixed": _fixed,
    "exponential": _exponential,
    "lognormal": _lognormal,
    "uniform": _uniform,
}
