"""Recorded cases that we believe are recorded wrongly: name → why.

They are run like the others; the report names them, so that nobody takes them for agreement.
"""

from __future__ import annotations

from collections.abc import Mapping

DOUBTFUL: Mapping[str, str] = {}
