"""Schedulers as benchmarks are given them: `mooring`, `kube-scheduler`, or `NAME=COMMAND` with fields to fill in."""

from __future__ import annotations

import shlex
import string
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mooring.base.errors import OperatorMistake, Problem, did_you_mean
from mooring.bench.programs import KUBE_SCHEDULER, require_programs

MOORING = "mooring"
DEFAULTS = (MOORING, KUBE_SCHEDULER)


@dataclass(frozen=True)
class SchedulerCommand:
    """A name, and the words of a command. In them `{config}` and other fields stand for what a run has."""

    name: str
    words: tuple[str, ...]

    @property
    def is_mooring(self) -> bool:
        """`mooring`, or another build of it: `mooring-old=…`."""
        return self.name.partition("-")[0] == MOORING

    def filled_in(self, fields: Mapping[str, object]) -> list[str]:
        return [word.format(**fields) for word in self.words]

    def uses(self, field: str) -> bool:
        return any(f"{{{field}}}" in word for word in self.words)


def gates_flag(gates: Iterable[tuple[str, bool]]) -> str:
    """As `--feature-gates` takes them."""
    return ",".join(f"{name}={str(value).lower()}" for name, value in gates)


def find_commands(
    wanted: Iterable[str], flags: Sequence[str], fields: Sequence[str], *, reserved: Collection[str] = ()
) -> list[SchedulerCommand]:
    """The schedulers that the command line names. `flags` are those of the known ones, `fields` what a command may use,
    `reserved` names that it may not have."""
    problems, found = [], list[SchedulerCommand]()
    for text in wanted:
        name, equals, command = text.partition("=")
        if any(each.name == name for each in found):
            problems.append(Problem(text, f'"{name}" is given twice; each scheduler needs a name of its own'))
        elif equals and name:
            faults = [f'"{name}" has another meaning here'] if name in reserved else _faults_of(command, fields)
            problems += [Problem(text, why) for why in faults]
            found.append(SchedulerCommand(name, () if faults else tuple(shlex.split(command))))
        elif name in DEFAULTS:
            found.append(SchedulerCommand(name, tuple(flags)))
        else:
            guess = did_you_mean(name, DEFAULTS)
            problems.append(Problem(text, f"is neither mooring, kube-scheduler nor NAME=COMMAND.{guess}"))
    if problems:
        raise OperatorMistake.found_in("--scheduler", problems)
    known = [text for text in wanted if text in DEFAULTS]
    return [
        SchedulerCommand(each.name, (*_program(each.name), *each.words)) if each.name in known else each
        for each in found
    ]


def _program(name: str) -> tuple[str, ...]:
    if name == KUBE_SCHEDULER:
        return (str(require_programs([KUBE_SCHEDULER])[KUBE_SCHEDULER]),)
    # This installation's `mooring`, as its users start it.
    launcher = Path(sys.executable).with_name("mooring")
    return (str(launcher), "run") if launcher.exists() else (sys.executable, "-m", "mooring", "run")


def _faults_of(command: str, known: Sequence[str]) -> list[str]:
    try:
        words = shlex.split(command)
        fields = [field for _, field, _, _ in string.Formatter().parse(command) if field is not None]
    except ValueError as error:
        return [f"the command cannot be read: {error}"]
    if not words:
        return ["the command is empty"]
    shown = ", ".join(f"{{{field}}}" for field in known)
    return [f"{{{field}}} is not known; the fields are {shown}" for field in fields if field not in known]
