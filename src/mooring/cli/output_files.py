"""Files that a command writes for its user: nothing is lost by a name that was given twice, or mistyped.

A file that is there is replaced if an earlier run wrote it for the same option; any other, and one that the same
command reads, only with `--force`. What cannot be written at all is refused before the command begins.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.base.files import is_stream

F = TypeVar("F", bound=Callable[..., Any])
FORCE = "name another file, or replace it with --force"
REMOVE = "name another file, or remove it"
"""Of commands whose flags are kube-scheduler's."""


class OutputFile(click.ParamType[str]):
    """The type of an option that names a file to write.

    `what` is in it, in words. `known_by` (`module:function`) finds out whether a file is such a one; without it each
    file that is there is refused.
    """

    name = "file"

    def __init__(self, what: str, known_by: str | None = None, *, advice: str = FORCE) -> None:
        self.what = what
        self.advice = advice
        self._known_by = known_by

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(value)

    def problem_with(self, path: str) -> str:
        """Why a file that is there must stay; empty if it may be replaced."""
        if not os.path.getsize(path):
            return ""
        if self._known_by is None:
            return f"{path} exists already; {self.advice}"
        module, _, function = self._known_by.partition(":")
        if getattr(importlib.import_module(module), function)(path):
            return ""
        return f"{path} exists and is no {self.what} that Mooring wrote; {self.advice}"


def replaces_files(command: F) -> F:
    """Adds `--force`, and looks at the files of the command's `OutputFile` options before it begins."""

    @click.option("--force", is_flag=True, help="Replace files that this command has not written.")
    @functools.wraps(command)
    def checked(*arguments: Any, force: bool, **options: Any) -> Any:
        refuse_lost_files(click.get_current_context(), force=force)
        return command(*arguments, **options)

    return checked  # type: ignore[return-value]


def refuse_lost_files(ctx: click.Context, *, force: bool = False) -> None:
    """All problems with the output files of a command line at once."""
    problems = []
    written_by: dict[str, str] = {}
    for parameter in ctx.command.params:
        path = ctx.params.get(parameter.name or "")
        if isinstance(parameter.type, OutputFile) and path not in (None, "-") and not is_stream(Path(path)):
            shown, place = _shown(parameter), _place(path)
            if place in written_by:
                problems.append(Problem(shown, f"{path} is also written by {written_by[place]}; name another file"))
            elif problem := _problem_with(path, parameter.type, ctx, force=force):
                problems.append(Problem(shown, problem))
            written_by[place] = shown
    if problems:
        raise OperatorMistake.found_in("the command line", problems)


def unwritable(path: str) -> str:
    """Why a file cannot be made or replaced; empty where nothing is in the way."""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"the folder {folder} of {path} does not exist"
    if os.path.islink(path):
        return f"{path} is a symbolic link; name the file that it points to"
    if os.path.isdir(path):
        return f"{path} is a folder"
    if os.path.lexists(path) and not os.path.isfile(path):
        return f"{path} is no regular file"
    return "" if os.access(folder, os.W_OK) else f"the folder {folder} cannot be written to"


def reader_of(path: str, ctx: click.Context) -> str:
    """The option or argument by which the command reads this very file, by whichever name; empty if there is none."""
    for parameter in ctx.command.params:
        if not isinstance(parameter.type, OutputFile):
            for value in _texts(ctx.params.get(parameter.name or "")):
                if _is_same_file(value, path):
                    return _shown(parameter)
    return ""


def _problem_with(path: str, kind: OutputFile, ctx: click.Context, *, force: bool) -> str:
    if problem := unwritable(path):
        return problem
    if force or not os.path.lexists(path):
        return ""
    if reader := reader_of(path, ctx):
        return f"{path} is what {reader} reads; {kind.advice}"
    return kind.problem_with(path)


def _shown(parameter: click.Parameter) -> str:
    return max(parameter.opts, key=len) if isinstance(parameter, click.Option) else parameter.make_metavar(_NO_CONTEXT)


_NO_CONTEXT = click.Context(click.Command("mooring"))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str | Path):
        yield str(value)
    elif isinstance(value, Iterable):
        for each in value:
            yield from _texts(each)


def _is_same_file(one: str, other: str) -> bool:
    try:
        return os.path.isfile(one) and os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _place(path: str) -> str:
    """The same for all spellings of a name, of a file that may not be there."""
    return os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
