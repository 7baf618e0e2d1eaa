"""Metrics as the operator wants them shown: some not at all, some labels with known values only.

Works on the text that is about to be served, so that what is measured does not depend on what is shown. A value that is
not allowed becomes `unexpected`, and samples that are alike then are added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping

UNEXPECTED = "unexpected"

_SAMPLE = re.compile(r"([^{\s]+)(?:\{(.*)\})?\s+(\S+)(.*)")
_LABEL = re.compile(r'([^=,\s]+)="((?:[^"\\]|\\.)*)"')

Allowed = Mapping[str, Mapping[str, Collection[str]]]
"""metric → label → values"""


class MetricFilter:
    def __init__(self, disabled: Collection[str] = (), allowed: Allowed | None = None) -> None:
        self._disabled = frozenset(disabled)
        self._allowed = allowed or {}

    def filtered(self, make: Callable[[], bytes]) -> Callable[[], bytes]:
        """The same page, as the operator wants it."""
        if not self._disabled and not self._allowed:
            return make
        return lambda: self.apply(make())

    def apply(self, text: bytes) -> bytes:
        lines: list[str] = []
        for name, head, samples in _families(text.decode().splitlines()):
            if name in self._disabled:
                continue
            lines += head
            allowed = self._allowed.get(name)
            lines += _constrained(samples, allowed) if allowed is not None else samples
        return "".join(f"{line}\n" for line in lines).encode()


def _families(lines: list[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Each metric's name, its comment lines and its samples."""
    name = ""
    head: list[str] = []
    samples: list[str] = []
    for line in lines:
        if not line.startswith("# "):
            samples.append(line)
            continue
        about = line.split(" ", 3)[2] if line.count(" ") >= 2 else ""
        if about != name:
            if head or samples:
                yield name, head, samples
            name, head, samples = about, [], []
        head.append(line)
    if head or samples:
        yield name, head, samples


def _constrained(samples: list[str], allowed: Mapping[str, Collection[str]]) -> list[str]:
    totals: dict[str, float] = {}
    for sample in samples:
        match = _SAMPLE.fullmatch(sample)
        if match is None:
            continue
        name, labels, value, _ = match.groups()
        pairs = ",".join(
            f'{label}="{value if label not in allowed or value in allowed[label] else UNEXPECTED}"'
            for label, value in _LABEL.findall(labels or "")
        )
        series = f"{name}{{{pairs}}}" if pairs else name
        totals[series] = totals.get(series, 0.0) + float(value)
    return [f"{series} {value!r}" for series, value in totals.items()]
