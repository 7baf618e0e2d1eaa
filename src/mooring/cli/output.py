"""Everything that a command writes for people passes here: untrusted text is escaped before it reaches a terminal.

`print_line` writes one line: a line break in a name does not begin another. `print_lines` writes text that we have laid
out in lines, `print_table` rows under headings. `print_yaml` and `print_json` write documents, with the escapes of
their languages. Colours are given apart from the text. Errors are shown without credentials. A test finds code that
writes past this file.
"""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import click

from mooring.base.errors import OperatorMistake
from mooring.base.redaction import scrubbed
from mooring.base.visible import visible, visible_json, visible_lines, visible_yaml

_PLAIN_WIDTH, _LEAST_WIDTH = 160, 20
"""Of tables: where the output is no terminal, and of a last column for which there is no room."""


def print_line(line: str = "", *, mark: str = "", colour: str | None = None, json: str = "", err: bool = False) -> None:
    """One line. Before it a coloured mark, after it a value that is JSON already."""
    before = f"{click.style(mark, fg=colour)} " if mark else ""
    click.echo(f"{before}{visible(line)}{visible_json(json)}", err=err)


def print_progress(line: str) -> None:
    """One line on standard error, a terminal, in place of the one before it. An empty one leaves nothing."""
    width = shutil.get_terminal_size().columns
    click.echo(f"\r{visible(line)[: width - 1]}\x1b[K", nl=False, err=True)


def print_lines(text: str, *, are_values_visible: bool = False, err: bool = False) -> None:
    """Text of several lines. Where its values have been made visible, their escapes are not escaped again."""
    click.echo(visible_yaml(text) if are_values_visible else visible_lines(text), err=err)


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as their values; the last one is folded to the width of the terminal."""
    shown = [[visible(cell) for cell in row] for row in [headings, *rows]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)][:-1]
    indent = sum(widths) + 2 * len(widths)
    room = (shutil.get_terminal_size().columns if sys.stdout.isatty() else _PLAIN_WIDTH) - indent
    click.echo(f"\n{click.style(visible(title), bold=True)}")
    for row in shown:
        before = "".join(f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=False))
        folded = textwrap.wrap(row[-1], max(room, _LEAST_WIDTH)) or [""]
        click.echo((before + ("\n" + " " * indent).join(folded)).rstrip())


def counted(number: int, noun: str) -> str:
    """`1 pod`, `2,000 pods`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def print_yaml(text: str) -> None:
    """YAML that ends with its own line break."""
    click.echo(visible_yaml(text), nl=False)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Plain data."""
    import json

    click.echo(visible_json(json.dumps(value, indent=indent, ensure_ascii=False)))


def print_error(error: BaseException) -> None:
    """An error. Line breaks in untrusted text are indented, so that they do not look like another message."""
    if isinstance(error, OperatorMistake):
        summary, problems = scrubbed(error.summary), error.problems
    else:
        summary, problems = scrubbed(str(error)), ()
    parts = [
        f"Error: {visible_lines(summary)}" if problems or "\n" not in summary else f"Error: {_indented(summary, 2)}"
    ]
    for problem in problems:
        where = visible(problem.path) + (f" (line {problem.line})" if problem.line is not None else "")
        parts.append(f"  {where}\n    {_indented(scrubbed(problem.message), 4)}")
    click.echo("\n\n".join(parts), err=True)


def _indented(text: str, spaces: int) -> str:
    first, *others = visible_lines(text).split("\n")
    return "\n".join([first, *(line if line.startswith(" " * spaces) else f"{' ' * spaces}{line}" for line in others)])


def show_usage_error(error: click.ClickException) -> None:
    """click's message about the command line, which may have come from elsewhere."""
    import io

    text = io.StringIO()
    error.show(file=text)
    click.echo(visible_lines(scrubbed(text.getvalue())), nl=False, err=True)


def show_crash(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For `sys.excepthook`: a traceback contains untrusted text, and may contain an address with its password."""
    import traceback

    for part in traceback.format_exception(kind, error, trace):
        click.echo(_indented(scrubbed(part.rstrip("\n")), 2), err=True)


def prepare() -> None:
    """Before anything is written: a character that the terminal's encoding lacks ends no command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    sys.excepthook = show_crash
    threading.excepthook = _show_crash_of_thread
    if logging.lastResort is not None:  # here asyncio reports what a task raised that nothing awaited
        logging.lastResort.setFormatter(_Formatter())


def _show_crash_of_thread(crash: threading.ExceptHookArgs) -> None:
    if crash.exc_value is not None and not isinstance(crash.exc_value, SystemExit):
        print_line(f"Exception in thread {crash.thread.name if crash.thread is not None else '?'}:", err=True)
        show_crash(crash.exc_type, crash.exc_value, crash.exc_traceback)


class _Formatter(logging.Formatter):
    """For messages of libraries."""

    def format(self, record: logging.LogRecord) -> str:
        return _indented(scrubbed(super().format(record)), 2)
