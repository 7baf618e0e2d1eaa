"""What a check found: how bad it is, in a sentence, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any


class CheckStatus(Enum):
    GOOD = "ok"
    NOTICE = "warning"
    """It works, but perhaps not as intended."""
    BAD = "failed"
    UNKNOWN = "skipped"
    """It could not be checked."""


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    check: str
    verdict: CheckStatus
    message: str
    to_do: str = ""

    def document(self) -> dict[str, Any]:
        written = {"check": self.check, "verdict": self.verdict.value, "message": self.message}
        return written | ({"toDo": self.to_do} if self.to_do else {})


def is_well(findings: Iterable[Finding]) -> bool:
    return all(finding.verdict is not CheckStatus.BAD for finding in findings)


def good(check: str, message: str) -> Finding:
    return Finding(check, CheckStatus.GOOD, message)


def notice(check: str, message: str, to_do: str) -> Finding:
    return Finding(check, CheckStatus.NOTICE, message, to_do)


def bad(check: str, message: str, to_do: str) -> Finding:
    return Finding(check, CheckStatus.BAD, message, to_do)


def unknown(check: str, message: str, to_do: str = "") -> Finding:
    return Finding(check, CheckStatus.UNKNOWN, message, to_do)
