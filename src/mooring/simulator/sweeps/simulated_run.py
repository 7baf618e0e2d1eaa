"""What a sweep runs unless it is given a function: a simulation, whose summary is the row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.simulation import simulate
from mooring.simulator.sweeps.parameters import MOST_LISTED, SweepRun

Measure = Callable[[SimulationResult], Mapping[str, Any]]
"""Further columns of a simulation."""

REQUIRED = ("cluster", "workload")
OPTIONAL = ("configuration", "plugins", "gates", "seed")
MADE = ("cluster", "workload", "configuration")
"""May be functions, which are called with the parameters that they name."""


class SimulatedRun:
    """Simulates `workload` on `cluster` with `configuration`; `seed` chooses between equally good nodes."""

    def __init__(self, measure: Measure | None = None) -> None:
        self._measure = measure

    def __call__(self, **parameters: Any) -> dict[str, Any]:
        made = {name: _made(parameters[name], parameters) for name in MADE if name in parameters}
        result = simulate(
            made["cluster"],
            made["workload"],
            made.get("configuration"),
            plugins=parameters.get("plugins", ()),
            gates=parameters.get("gates"),
            ties=parameters.get("seed"),
        )
        if result.is_interrupted:
            raise KeyboardInterrupt
        return {**result.summary(), **(self._measure(result) if self._measure is not None else {})}

    @staticmethod
    def check(parameters: Mapping[str, Any]) -> list[Problem]:
        """What is wrong with the parameters of a run, before it is submitted."""
        problems = [Problem(name, "is missing; a simulation needs it") for name in REQUIRED if name not in parameters]
        for name in REQUIRED:
            if isinstance(path := parameters.get(name), str | PurePath):
                problems.append(Problem(name, f'is the path "{path}"; read it: {name.title()}.read(path)'))
        taken = {*REQUIRED, *OPTIONAL}
        for name in MADE:
            if callable(function := parameters.get(name)):
                taken |= set(wanted := _wanted(function))
                for each in wanted:
                    if each not in parameters and inspect.signature(function).parameters[each].default is _NO_DEFAULT:
                        problems.append(Problem(name, f'its function takes "{each}", which is no parameter'))
        for name in parameters:
            if name not in taken:
                known = did_you_mean(name, taken)
                problems.append(Problem(name, f"is taken by no simulation and by no function of one.{known}"))
        return problems


_NO_DEFAULT = inspect.Parameter.empty


def _wanted(function: Callable[..., Any]) -> list[str]:
    return [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)
    ]


def _made(value: Any, parameters: Mapping[str, Any]) -> Any:
    if not callable(value):
        return value
    return value(**{name: parameters[name] for name in _wanted(value) if name in parameters})


def check_parameters(function: Callable[..., Any], runs: Sequence[SweepRun]) -> None:
    """Refuse runs that the function does not take. Runs with the same kinds of parameters are checked once."""
    problems: dict[Problem, None] = {}
    seen = set()
    for run in runs:
        kind = tuple((name, id(value) if callable(value) else type(value)) for name, value in run.values.items())
        if kind not in seen:
            seen.add(kind)
            found = SimulatedRun.check(run.values) if isinstance(function, SimulatedRun) else _check(function, run)
            problems |= dict.fromkeys(found)
    if problems:
        raise OperatorMistake.found_in("The sweep", list(problems)[:MOST_LISTED])


def _check(function: Callable[..., Any], run: SweepRun) -> list[Problem]:
    try:
        inspect.signature(function).bind(**run.values)
    except TypeError as error:
        name = getattr(function, "__name__", type(function).__name__)
        return [Problem(f"{name}()", f"does not take the parameters {', '.join(run.values)}: {error}")]
    except ValueError:  # a builtin without a signature
        return []
    return []
