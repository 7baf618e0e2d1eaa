"""Which runs a sweep has: a grid of named values, or a list of samples.

A parameter that differs between runs is a column of the results, so it needs a label there: numbers, texts and paths
are their own, other objects get one as the key of a mapping, or by `Labelled`.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

import msgspec
import numpy as np

from mooring.base.errors import OperatorMistake, Problem

Label: TypeAlias = str | int | float | bool | None
Grid: TypeAlias = Mapping[str, Any]
Samples: TypeAlias = Sequence[Mapping[str, Any]]

MOST_LISTED = 10
"""So many runs or mistakes are listed in a message."""


class Labelled(msgspec.Struct, frozen=True):
    """A value, and what the results call it."""

    label: Label
    value: Any


class SweepRun(msgspec.Struct, frozen=True):
    """One run: the values of its parameters, and the labels that identify it."""

    labels: dict[str, Label]
    values: dict[str, Any]

    @property
    def key(self) -> str:
        """The same in every process, for equal labels."""
        return key_of(self.labels)

    def __str__(self) -> str:
        return shown(self.labels)


def shown(labels: Mapping[str, Label]) -> str:
    return ", ".join(f"{name}={label}" for name, label in labels.items()) or "the only run"


def key_of(labels: Mapping[str, Label]) -> str:
    return json.dumps(dict(sorted(labels.items())), ensure_ascii=False)


def labels_of(key: str) -> dict[str, Label]:
    labels: dict[str, Label] = json.loads(key)
    return labels


def runs_of(parameters: Grid | Samples, common: Mapping[str, Any]) -> list[SweepRun]:
    """The runs of a grid (the last parameter changes fastest) or of samples, in order. All mistakes at once."""
    reading = _Reading()
    if isinstance(parameters, Mapping):
        columns, shared = reading.grid(parameters)
        samples: Iterable[dict[str, Labelled]] = (
            dict(zip(columns, row, strict=True)) for row in itertools.product(*columns.values())
        )
    else:
        samples, shared = [reading.sample(sample, f"samples[{index}]") for index, sample in enumerate(parameters)], {}
        if not samples:
            reading.problem("samples", "there are none; a sweep needs one run at least")
    shared = {**shared, **common}
    reading.refuse()
    runs = [
        SweepRun(
            {name: each.label for name, each in sample.items()},
            shared | {name: each.value for name, each in sample.items()},
        )
        for sample in samples
    ]
    _refuse_repeated(runs)
    return runs


class _Reading:
    def __init__(self) -> None:
        self._problems: list[Problem] = []

    def problem(self, path: str, message: str) -> None:
        self._problems.append(Problem(path, message))

    def refuse(self) -> None:
        if self._problems:
            raise OperatorMistake.found_in("The sweep", self._problems[:MOST_LISTED])

    def grid(self, grid: Grid) -> tuple[dict[str, list[Labelled]], dict[str, Any]]:
        """The parameters that differ, and those that are the same in all runs."""
        columns: dict[str, list[Labelled]] = {}
        shared: dict[str, Any] = {}
        for name, given in grid.items():
            if (values := _several(given)) is not None:
                columns[name] = [each for value in values if (each := self._labelled(value, name)) is not None]
                if not values:
                    self.problem(name, "has no values; give one at least")
            elif _is_label(given) or isinstance(given, Labelled):
                columns[name] = [each for each in [self._labelled(given, name)] if each is not None]
            else:
                shared[name] = given
        return columns, shared

    def sample(self, sample: Mapping[str, Any], path: str) -> dict[str, Labelled]:
        if not isinstance(sample, Mapping):
            self.problem(path, f"must be a mapping from parameters to values, got {type(sample).__name__}")
            return {}
        labelled = {name: self._labelled(value, f"{path}.{name}") for name, value in sample.items()}
        return {name: each for name, each in labelled.items() if each is not None}

    def _labelled(self, value: Any, path: str) -> Labelled | None:
        if isinstance(value, Labelled):
            if _is_label(value.label):
                return Labelled(_label(value.label), value.value)
            self.problem(path, f"a label must be a text or a number, got {type(value.label).__name__}")
            return None
        if _is_label(value):
            return Labelled(_label(value), value.item() if isinstance(value, np.generic) else value)
        self.problem(
            path,
            f"{_with_article(type(value).__name__)} has no label for the results; give it one: "
            "{'name': value} in a grid, Labelled('name', value) in samples, or pass what is the same in all runs by "
            "common=",
        )
        return None


def _with_article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _several(given: Any) -> list[Any] | None:
    """The values of a parameter of a grid; None: it is one value."""
    if isinstance(given, Mapping):
        if "apiVersion" in given:  # a KubeSchedulerConfiguration
            return None
        return [Labelled(label, value) for label, value in given.items()]
    if isinstance(given, list | tuple | range):
        return list(given)
    if isinstance(given, np.ndarray) and given.ndim == 1:
        return list(given.tolist())
    return None


def _is_label(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | PurePath | np.number | np.bool_)


def _label(value: Any) -> Label:
    plain = value.item() if isinstance(value, np.generic) else value
    return str(plain) if isinstance(plain, PurePath) else plain


def _refuse_repeated(runs: Sequence[SweepRun]) -> None:
    counts = Counter(run.key for run in runs)
    repeated = {run.key: run for run in runs if counts[run.key] > 1}
    if repeated:
        problems = [
            Problem(str(run), f"there are {counts[key]} runs with these parameters; nothing may be counted twice")
            for key, run in repeated.items()
        ]
        raise OperatorMistake.found_in("The sweep", problems[:MOST_LISTED])
