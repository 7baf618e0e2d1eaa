"""What can go wrong with an expression.

A mistake in the text is an `Issue`; a compilation collects them all and never raises. What goes wrong while an
expression is evaluated is a `CelError`; `&&`, `||` and the quantifiers absorb it where the result does not depend on
it. An exhausted budget ends the evaluation: nothing absorbs it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mooring.base.errors import Fault

NO_SUCH_OVERLOAD = "no such overload"


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


def no_such_overload(function: str, *type_names: str) -> CelError:
    """The function is known, but not for values of these types."""
    if not function:
        return CelError(NO_SUCH_OVERLOAD)
    return CelError(f"{NO_SUCH_OVERLOAD}: {function}({', '.join(type_names)})")
