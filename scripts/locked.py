"""Read a lock file of requirements/: packages with exact versions, environment markers, hashes and dependents.

The lock is what `scripts/lock` writes. A line that is none of its forms is an error: an entry that is skipped would be
missing in the SBOM and in the audit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
RUNTIME = REQUIREMENTS / "runtime.txt"
ALL = (REQUIREMENTS / "dev.txt", REQUIREMENTS / "docs.txt")
"""Together: the other locks are parts of them."""

_PACKAGE = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>.+?))? \\")
_HASH = re.compile(r"    --hash=sha256:(?P<hash>[0-9a-f]{64})(?: \\)?")
_DEPENDENT = re.compile(r"    #(?: via|  ) +(?P<name>[a-z0-9-]+)(?: \(.*\))?")
_NO_DEPENDENT = re.compile(r"    # via|    #(?: via|  ) +-c \S+|#.*|")


@dataclass
class Package:
    name: str
    version: str
    marker: str | None
    hashes: list[str] = field(default_factory=list)
    dependents: list[str] = field(default_factory=list)
    """Names of the packages that require this one; the project itself among them."""


def packages(lock: Path) -> list[Package]:
    """All entries of a lock file. One package may have several, for different environments."""
    found: list[Package] = []
    for number, line in enumerate(lock.read_text(encoding="utf-8").splitlines(), start=1):
        if entry := _PACKAGE.fullmatch(line):
            found.append(Package(entry["name"], entry["version"], entry["marker"]))
        elif hashed := _HASH.fullmatch(line):
            found[-1].hashes.append(hashed["hash"])
        elif dependent := _DEPENDENT.fullmatch(line):
            found[-1].dependents.append(dependent["name"])
        elif not _NO_DEPENDENT.fullmatch(line):
            raise SystemExit(f"{lock}:{number}: not a line of a lock; run `make lock`: {line}")
    if unhashed := [package.name for package in found if not package.hashes]:
        raise SystemExit(f"{lock}: no hashes for {', '.join(unhashed)}; run `make lock`")
    return found
