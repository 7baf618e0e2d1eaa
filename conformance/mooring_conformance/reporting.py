"""What is printed: a line for each family, and the first differences with ours and theirs side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mooring.base.documents import written
from mooring_conformance.known_bad_cases import KNOWN_BAD_CASES
from mooring_conformance.running import Differing, Report
from mooring_conformance.slow import Measured

MOST_DIFFERENCES = 8
"""So many of one case are shown."""


class Printer:
    """Prints reports as they come, and remembers whether all was well."""

    def __init__(self, echo: Callable[[str], object], most: int) -> None:
        self._echo = echo
        self.most = most
        """How many differing cases of a family are shown."""
        self._families = 0
        self._cases = 0
        self._agreeing = 0

    @property
    def any_differs(self) -> bool:
        return self._agreeing < self._cases

    def family(self, report: Report) -> None:
        if not self._families:
            self._echo(_row("family", "cases", "agree"))
        self._families += 1
        self._cases += report.cases
        self._agreeing += report.agreeing
        self._echo(_row(report.family, report.cases, report.agreeing))
        for differing in report.differing[: self.most]:
            self._echo(f"\n{shown(differing)}\n")
            if differing.name in KNOWN_BAD_CASES:
                self._echo(f"  It is known to be recorded wrongly: {KNOWN_BAD_CASES[differing.name]}\n")

    def total(self) -> None:
        if self._families > 1:
            self._echo(_row("all", self._cases, self._agreeing))

    def small(self, recorded: dict[str, Any], file: Path) -> None:
        """A case that was made small, and where to find it."""
        self._echo(f"The smallest case of this kind, added to {file}:\n\n{written(recorded['case'])}")


class SlowPrinter:
    """Prints what hostile pods cost."""

    def __init__(self, echo: Callable[[str], object]) -> None:
        self._echo = echo
        self.wrong: list[Measured] = []
        """Those that kube-scheduler decides otherwise."""

    def measured(self, found: Measured) -> None:
        if found.differences:
            self.wrong.append(found)
            self._echo(f"\n{shown(Differing(str(found.recipe), ('vector',), found.differences))}\n")

    def worst(self, by_plugin: Mapping[str, Measured]) -> None:
        """The slowest decision of each plugin."""
        self._echo(f"{'plugin':<32}{'ours':>8}{'theirs':>8}{'ratio':>8}   (s of CPU)")
        for plugin, found in sorted(by_plugin.items(), key=lambda item: -item[1].seconds):
            theirs = "" if found.theirs is None else f"{found.theirs:.3f}"
            ratio = "" if found.ratio is None else f"{found.ratio:.1f}"
            self._echo(f"{plugin or '(the engine)':<32}{found.seconds:>8.3f}{theirs:>8}{ratio:>8}   {found.recipe}")

    def small(self, found: Measured, file: Path | None) -> None:
        what = "differs" if found.differences else f"takes {found.seconds:.2f} s of CPU"
        added = f", added to {file}" if file is not None else ""
        self._echo(f"The smallest pod of this kind {what}{added}: {found.recipe}")


def _row(family: str, cases: object, agreeing: object) -> str:
    return f"{family:<20} {cases:>6} {agreeing:>6}"


def shown(differing: Differing) -> str:
    """The differences of a case."""
    lines = [f"  {differing.name} ({', '.join(differing.ways)})"]
    for difference in differing.differences[:MOST_DIFFERENCES]:
        what = " ".join(part for part in (difference.kind, difference.where, difference.plugin) if part)
        lines += [
            f"    {what}",
            f"      ours   {as_text(difference.ours)}",
            f"      theirs {as_text(difference.theirs)}",
        ]
    left = len(differing.differences) - MOST_DIFFERENCES
    if left > 0:
        lines.append(f"    … and {left} more")
    return "\n".join(lines)


def as_text(value: Any) -> str:
    """A verdict in one line; everything else as it is."""
    if isinstance(value, dict) and "reasons" in value:
        return f"{value['plugin'] or '(the engine)'} {value['code']}: {', '.join(value['reasons'])}"
    return "nothing" if value is None else str(value).replace("\n", "\n             ")
