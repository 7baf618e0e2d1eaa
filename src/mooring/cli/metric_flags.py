"""kube-scheduler's flags about which metrics are shown."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.gotypes import Flag, GoList

if TYPE_CHECKING:
    from mooring.scheduler.serving.metric_filter import MetricFilter

F = TypeVar("F", bound=Callable[..., Any])

LABELS, MANIFEST = "--allow-metric-labels", "--allow-metric-labels-manifest"


def metric_options(command: F) -> F:
    """The flags; the command gets them among its parameters."""
    command = click.option(
        MANIFEST,
        cls=Flag,
        default="",
        metavar="FILE",
        help="A YAML file with `allowListMapping`, the same as --allow-metric-labels.",
    )(command)
    command = click.option(
        LABELS,
        cls=Flag,
        multiple=True,
        metavar="METRIC,LABEL=VALUES",
        help="The values of a label that are shown as they are; others are shown as `unexpected`.",
    )(command)
    return click.option(
        "--disabled-metrics", cls=Flag, type=GoList(), default=(), metavar="NAMES", help="Metrics that are not shown."
    )(command)


def metric_filter(given: dict[str, Any]) -> MetricFilter:
    """The metric options of these parameters of a command; they are taken out of `given`."""
    from mooring.scheduler.serving.metric_filter import MetricFilter

    labels, manifest = given.pop("allow_metric_labels"), given.pop("allow_metric_labels_manifest")
    problems: list[Problem] = []
    allowed: dict[str, dict[str, frozenset[str]]] = {}
    listed = [*_in_manifest(manifest), *((LABELS, *pair) for pair in _pairs(labels, problems))]
    for source, key, values in listed:
        metric, comma, label = key.partition(",")
        if not metric or not comma or not label or "," in label:
            problems.append(Problem(source, f'"{key}" must be METRIC,LABEL'))
            continue
        allowed.setdefault(metric.strip(), {})[label.strip()] = frozenset(values.split(","))
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    return MetricFilter([name for name in given.pop("disabled_metrics") if name], allowed)


def _pairs(texts: Iterable[str], problems: list[Problem]) -> list[tuple[str, str]]:
    """`m,l=a,b`; several in one flag need quotes: `"m,l=a,b","n,l=c"`."""
    found = []
    for text in texts:
        parts = [text.strip('"')] if text.count("=") == 1 else next(csv.reader([text]), [])
        for part in parts:
            key, equals, values = part.partition("=")
            if equals:
                found.append((key, values.strip("'")))
            else:
                problems.append(Problem(LABELS, f'must be METRIC,LABEL=VALUE,VALUE; got "{part}"'))
    return found


def _in_manifest(file: str) -> list[tuple[str, str, str]]:
    if not file:
        return []
    from mooring.base.documents import read_tree
    from mooring.cli.common import read_text

    document = read_tree(read_text(file), file).plain()
    mapping = document.get("allowListMapping") if isinstance(document, dict) else None
    if not isinstance(mapping, dict) or not all(isinstance(value, str) for value in mapping.values()):
        what = f'{file} must hold allowListMapping, whose keys are "METRIC,LABEL" and whose values are texts'
        raise OperatorMistake.found_in("the command line", [Problem(MANIFEST, what)])
    return [(f"{MANIFEST}, {file}", str(key), value) for key, value in mapping.items()]
