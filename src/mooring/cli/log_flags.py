"""kube-scheduler's flags for the log beyond verbosity and format: separate streams for information and errors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from mooring.base import log
from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.gotypes import GoBool, Row, flags

if TYPE_CHECKING:
    from mooring.framework.gates import FeatureGates

F = TypeVar("F", bound=Callable[..., Any])

GATE = "LoggingAlphaOptions"
FORMS = ("text", "json")


def split_stream_options(command: F) -> F:
    """`--log-text-split-stream` and `--log-json-split-stream`."""
    rows: dict[str, Row] = {
        f"--log-{form}-split-stream": (GoBool(), False, "BOOL", f"In {form} format, write what is no error to stdout.")
        for form in FORMS
    }
    return flags(rows)(command)


def split_streams(given: dict[str, Any], gates: FeatureGates) -> None:
    """Do what these parameters of a command ask for; they are taken out of `given`."""
    asked = {form: given.pop(f"log_{form}_split_stream") for form in FORMS}
    problems = [
        Problem(f"--log-{form}-split-stream", f"needs --feature-gates={GATE}=true, as it does in kube-scheduler")
        for form, is_asked in asked.items()
        if is_asked and not gates.on(GATE)
    ]
    if problems:
        raise OperatorMistake.found_in("the command line", problems)
    if asked[log.settings().format]:
        log.configure(info_stream=sys.stdout)
