"""Collecting every mistake in a file before reporting any."""

from __future__ import annotations

from mooring.base.documents import THE_FILE, Tree
from mooring.base.errors import OperatorMistake, Problem


class Problems:
    """The mistakes and warnings found so far. The same one is kept once."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._errors: dict[Problem, None] = {}
        self._warnings: dict[Problem, None] = {}

    def error(self, at: Tree, message: str, *, field: str | None = None) -> None:
        self._errors[_problem(at, message, field)] = None

    def warn(self, at: Tree, message: str, *, field: str | None = None) -> None:
        self._warnings[_problem(at, message, field)] = None

    def error_at(self, tree: Tree, field: str, message: str) -> None:
        """An error in a field of a mapping, there or missing."""
        found = tree.get(field)
        self.error(found or tree, message, field=None if found else field)

    @property
    def count(self) -> int:
        return len(self._errors)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        return tuple(sorted(self._warnings, key=_by_line))

    def raise_if_any(self) -> None:
        if self._errors:
            raise OperatorMistake.found_in(self._source, sorted(self._errors, key=_by_line))


def _problem(at: Tree, message: str, field: str | None) -> Problem:
    path = at.below(field) if field else at.path
    return Problem(path or THE_FILE, message, at.line)


def _by_line(problem: Problem) -> int:
    return problem.line or 0
