"""Curves compared with the published ones, where the folder of the trace has them (`curves.csv`)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mooring.simulator.text_files import text_file

from .sampling import LOADS, METRICS
from .trace import found_file

CURVES = "curves.csv"
Key = tuple[str, str, int, str]
"""Workload, policy, seed and metric."""


def read_curves(folder: Path | str) -> dict[Key, list[str]] | None:
    """The published values at all loads, as they are written; None: the folder has none."""
    path = found_file(folder, CURVES)
    if path is None:
        return None
    with text_file(path) as lines:
        return {
            (row["workload"], row["policy"], int(row["seed"]), row["metric"]): [row[str(load)] for load in LOADS]
            for row in csv.DictReader(lines)
        }


def equal_points(curve: Iterable[float], published: Iterable[str]) -> int:
    """At how many loads the two are the same to the last digit."""
    return sum(f"{value:.2f}" == text for value, text in zip(curve, published, strict=True))


def compared(rows: Iterable[Mapping[str, Any]], published: Mapping[Key, list[str]]) -> list[str]:
    """A line for each policy: equal points, and the largest distance of the mean over its runs, which is what remains
    to compare of a random policy."""
    by_policy: dict[str, list[tuple[Mapping[str, Any], dict[str, list[str]]]]] = {}
    for row in rows:
        keys = {metric: (row["workload"], row["policy"], row["seed"], metric) for metric in METRICS}
        theirs = {metric: published[key] for metric, key in keys.items() if key in published}
        if len(theirs) == len(METRICS):
            by_policy.setdefault(row["policy"], []).append((row, theirs))
    lines = []
    for policy, runs in by_policy.items():
        equal = {metric: sum(equal_points(row[metric], theirs[metric]) for row, theirs in runs) for metric in METRICS}
        ours = np.mean([row["alloc"] for row, _ in runs], axis=0)
        mean = np.mean([[float(text) for text in theirs["alloc"]] for _, theirs in runs], axis=0)
        points = ", ".join(f"{metric} {equal[metric]:,}" for metric in METRICS)
        lines.append(
            f"{policy}: {len(runs):,} runs of {len(LOADS)} points each. Equal to the last digit of "
            f"{len(runs) * len(LOADS):,}: {points}. Means of alloc differ by {np.abs(ours - mean).max():.2f} at most."
        )
    return lines
