"""What a check found: how bad it is, in a sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Verdict(Enum):
    GOOD = "ok"
    NOTICE = "warning"
    """It will work, but not as one might think."""
    BAD = "failed"
    UNKNOWN = "skipped"
    """It could not be found out."""


@dataclass(frozen=True)
class Finding:
    """The answer to one question."""

    check: str
    verdict: Verdict
    said: str
    to_do: str = ""

    def document(self) -> dict[str, Any]:
        written = {"check": self.check, "verdict": self.verdict.value, "message": self.said}
        return written | ({"toDo": self.to_do} if self.to_do else {})


def is_well(findings: Iterable[Finding]) -> bool:
    return all(finding.verdict is not Verdict.BAD for finding in findings)


def good(check: str, said: str) -> Finding:
    return Finding(check, Verdict.GOOD, said)


def notice(check: str, said: str, to_do: str) -> Finding:
    return Finding(check, Verdict.NOTICE, said, to_do)


def bad(check: str, said: str, to_do: str) -> Finding:
    return Finding(check, Verdict.BAD, said, to_do)


def unknown(check: str, said: str, to_do: str = "") -> Finding:
    return Finding(check, Verdict.UNKNOWN, said, to_do)
