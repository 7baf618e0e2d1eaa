"""What can go wrong with an expression.

A mistake in the text is an `Issue`; a compilation collects them all and never raises. What goes wrong while an
expression is evaluated is a `CelError`; `&&`, `||` and the quantifiers absorb it where the result does not depend on
it. An exhausted budget ends the evaluation: nothing absorbs it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from mooring.base.errors import Fault

NO_SUCH_OVERLOAD = "no such overload"
MOST_ISSUES = 100
_LONGEST_SNIPPET = 16_384


class CelError(Fault):
    """An expression has no value for this input. The text is cel-go's."""


class Ended(CelError):
    """The evaluation ends here: `&&`, `||` and the quantifiers do not absorb it."""


class CostLimitExceeded(Ended):
    """The evaluation took more than its budget."""

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


class StepLimitExceeded(Ended):
    """The evaluation took more steps than we allow, whatever its cost."""

    def __init__(self) -> None:
        super().__init__(
            "operation cancelled: evaluation takes too long; use shorter texts and lists or smaller regular expressions"
        )


class CompileError(Fault):
    """The text is no expression, or none of this environment. Carries every issue at once, in cel-go's words."""


@dataclass(frozen=True)
class Issue:
    """One mistake in the text of an expression, and the offset in characters where it is (None: nowhere)."""

    offset: int | None
    message: str


class Source:
    """An expression's text with its lines, and how issues in it are shown.

    Kubernetes shows what cel-go shows: line and column, the line, and a caret under the place. Wide characters get
    wide dots, so that the caret stands where it should.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(offset + 1 for offset, character in enumerate(text) if character == "\n")]
        self._lines = text.split("\n")

    def position(self, offset: int) -> tuple[int, int]:
        """Line, from 1, and column, from 0; in an empty text, upstream's column before the first."""
        if not self.text:
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def shown(self, issues: Sequence[Issue]) -> str:
        """All issues, in the order of their places; of more than a hundred, the first hundred reported."""
        placed = [(self._place(issue), issue) for issue in issues[:MOST_ISSUES]]
        placed.sort(key=lambda each: each[0])
        lines = [self._shown(line, column, issue.message) for (line, column), issue in placed]
        if len(issues) > MOST_ISSUES:
            lines.append(f"{len(issues) - MOST_ISSUES} more errors were truncated")
        return "\n".join(lines)

    def _place(self, issue: Issue) -> tuple[int, int]:
        return (-1, -1) if issue.offset is None else self.position(issue.offset)

    def _shown(self, line: int, column: int, message: str) -> str:
        heading = f"ERROR: <input>:{line}:{column + 1}: {message}"
        if not self.text or not 1 <= line <= len(self._lines):
            return heading
        snippet = self._lines[line - 1].replace("\t", " ")
        if len(snippet.encode()) > _LONGEST_SNIPPET:
            return heading
        dots = "".join("．" if ord(character) > 127 else "." for character in snippet[:column])
        caret = "＾" if ord(snippet[column : column + 1] or " ") > 127 else "^"
        return f"{heading}\n | {snippet}\n | {dots}{caret}"


def no_such_overload(function: str, *type_names: str) -> CelError:
    """The function is known, but not for values of these types."""
    if not function:
        return CelError(NO_SUCH_OVERLOAD)
    return CelError(f"{NO_SUCH_OVERLOAD}: {function}({', '.join(type_names)})")
