"""Running many cases, each in several ways, in several processes; and what came of it."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from enum import Enum
from multiprocessing import get_context

from mooring.base.errors import OperatorMistake
from mooring.engine import Form
from mooring_conformance.cases import Recorded, decoded
from mooring_conformance.comparing import Difference, differences
from mooring_conformance.history import churn
from mooring_conformance.our_decision import our_decision, rejected
from mooring_conformance.plugin_subset import differences_of
from mooring_conformance.pod_groups import pod_group_differences
from mooring_conformance.queue_order import queue_differences
from mooring_conformance.single_steps import step_differences
from mooring_conformance.situation import Situation

CHUNK = 20
"""So many cases go to a process at a time."""


class Way(Enum):
    """How a case is decided. Whichever way, the decision is the same."""

    PLAIN = "plain"
    """Rules run node by node where they can."""
    VECTOR = "vector"
    """Rules run for all nodes at once where they can."""
    CHURNED = "churned"
    """After the cluster has changed and changed back, as a scheduler that runs for long sees it."""

    @property
    def form(self) -> Form:
        return {Way.PLAIN: Form.PLAIN, Way.VECTOR: Form.VECTOR, Way.CHURNED: Form.FASTER}[self]


@dataclass(frozen=True)
class Options:
    ways: tuple[Way, ...] = tuple(Way)
    plugins: frozenset[str] = frozenset()
    """Only the results of these are compared; empty: everything."""


@dataclass(frozen=True)
class Differing:
    """A case that we decide otherwise."""

    name: str
    ways: tuple[str, ...]
    differences: tuple[Difference, ...]


@dataclass
class Report:
    """How a family of cases went."""

    family: str
    cases: int = 0
    differing: list[Differing] = field(default_factory=list)

    @property
    def agreeing(self) -> int:
        return self.cases - len({each.name for each in self.differing})


def run_case(recorded: Recorded, options: Options) -> list[Differing]:
    """One case in every chosen way; ways with the same differences together."""
    found: list[Differing] = []
    name = recorded.case.name or recorded.expect.get("name", "")
    for way, different in _by_way(recorded, options):
        if found and different == found[-1].differences:
            found[-1] = Differing(name, (*found[-1].ways, way), different)
        elif different:
            found.append(Differing(name, (way,), different))
    return found


def _by_way(recorded: Recorded, options: Options) -> Iterator[tuple[str, tuple[Difference, ...]]]:
    case, expect = recorded.case, recorded.expect
    if "outcomes" in expect:  # whole cycles of pod groups, not one decision
        try:
            yield "cycles", tuple(pod_group_differences(case, expect))
        except Exception as crash:
            yield "cycles", (_crashed(crash),)
        return
    try:
        situation = Situation(case)
        if not case.decides:
            order = tuple(queue_differences(case, situation, expect)) if case.queue else ()
            steps = tuple(step_differences(case, situation, expect)) if case.steps else ()
            yield "queue", (*order, *steps)
            return
    except OperatorMistake as mistake:
        yield "configuration", tuple(differences(rejected(mistake), expect))
        return
    except Exception as crash:
        yield "setting up", (_crashed(crash),)
        return
    for way in options.ways:
        try:
            before: tuple[Difference, ...] = ()
            if case.steps:  # they change what plugins remember: each way begins with its own
                situation = Situation(case)
                before = tuple(step_differences(case, situation, expect))
            if way is Way.CHURNED:
                churn(situation)
            yield way.value, (*before, *_differences(situation, way.form, expect, options.plugins))
        except Exception as crash:  # whatever it is, the other cases are run, and this one has not agreed
            yield way.value, (_crashed(crash),)


def _differences(
    situation: Situation, form: Form, expect: dict[str, object], plugins: frozenset[str]
) -> Iterable[Difference]:
    if plugins:
        return differences_of(situation, form, expect, plugins)
    return differences(our_decision(situation, form), expect)


def _crashed(crash: Exception) -> Difference:
    """What was raised, and where."""
    last = traceback.extract_tb(crash.__traceback__)[-1]
    what = f"{type(crash).__name__}: {crash} (in {last.name}, {last.filename}:{last.lineno})"
    return Difference("crash", "", what, "no crash")


def run_lines(lines: Sequence[tuple[str, bytes]], options: Options) -> list[Differing]:
    return [each for where, line in lines for each in run_case(decoded(line, where), options)]


def run(
    family: str, lines: Sequence[tuple[str, bytes]], options: Options, pool: ProcessPoolExecutor | None = None
) -> Report:
    """Every case of a family, here or in the processes of the pool."""
    report = Report(family, len(lines))
    chunks = [lines[start : start + CHUNK] for start in range(0, len(lines), CHUNK)]
    if pool is None:
        results: Iterable[list[Differing]] = (run_lines(chunk, options) for chunk in chunks)
    else:
        results = pool.map(run_lines, chunks, [options] * len(chunks))
    for result in results:
        report.differing += result
    return report


def processes(jobs: int) -> ProcessPoolExecutor:
    """Fresh processes: what this one has loaded and locked does not matter to them."""
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
