"""The labels of many objects as columns: a requirement is held against the distinct values of its label.

Users choose how many selectors there are and how long they get, and how many objects have labels of their own.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence

import numpy as np

from mooring.framework.verdicts import BoolArray, IntArray
from mooring.objects.selectors import Labels, requirement_matches

MOST_COLUMNS = 64


class LabelColumns:
    """Labels that do not change, in order. `keys`: of all of them."""

    def __init__(self, labels: Sequence[Labels], keys: Container[str]) -> None:
        self._labels, self._keys = labels, keys
        self._columns: dict[str, tuple[IntArray, dict[str, int]]] = {}
        """By key the code of each object's value (0: none), and the code of each value."""

    def matching(self, requirements: Iterable[tuple[str, str, Sequence[str]]]) -> BoolArray:
        """Which of them meet all requirements."""
        mask = np.ones(len(self._labels), np.bool_)
        for key, operator, values in requirements:
            if key not in self._keys:
                if requirement_matches(key, operator, values, {}):
                    continue
                return np.zeros(len(self._labels), np.bool_)
            codes, passes = self._passing(key, operator, values)
            if passes.all():
                continue
            mask &= passes.take(codes)
            if not mask.any():
                break
        return mask

    def _passing(self, key: str, operator: str, values: Sequence[str]) -> tuple[IntArray, BoolArray]:
        """The code of each object, and whether the requirement holds for each code."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = self._column(key)
            if len(self._columns) > MOST_COLUMNS:
                del self._columns[next(iter(self._columns))]
        codes, code_of = column
        passes = np.zeros(len(code_of) + 1, np.bool_)
        passes[0] = requirement_matches(key, operator, values, {})
        if operator in ("In", "NotIn"):
            passes[1:] = operator == "NotIn"
            passes[[code_of[value] for value in values if value in code_of]] = operator == "In"
        else:
            passes[1:] = [requirement_matches(key, operator, values, {key: value}) for value in code_of]
        return codes, passes

    def _column(self, key: str) -> tuple[IntArray, dict[str, int]]:
        code_of: dict[str, int] = {}
        codes = np.zeros(len(self._labels), np.intp)
        for place, labels in enumerate(self._labels):
            value = labels.get(key)
            if value is not None:
                codes[place] = code_of.setdefault(value, len(code_of) + 1)
        return codes, code_of
