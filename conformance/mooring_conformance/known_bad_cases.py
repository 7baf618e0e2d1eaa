"""Recorded cases that are known to be recorded wrongly: name → why.

They are run like the others; the report names them, so that they do not pass for agreement.
"""

from __future__ import annotations

from collections.abc import Mapping

KNOWN_BAD_CASES: Mapping[str, str] = {}
