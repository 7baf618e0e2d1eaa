"""`--record FILE`: what the scheduler sees and decides, in a file that `mooring replay` reads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from mooring.base.errors import OperatorMistake, Problem
from mooring.cli.gotypes import Flag
from mooring.cli.output import print_line

if TYPE_CHECKING:
    from mooring.recording import Recorder

F = TypeVar("F", bound=Callable[..., Any])
LEAST_BYTES = 1024 * 1024


class RecordingFlags(NamedTuple):
    """As given on the command line."""

    file: str | None = None
    limit_bytes: int = 0
    annotations: tuple[str, ...] = ()


NO_RECORDING = RecordingFlags()


def _size(ctx: click.Context, parameter: click.Parameter, text: str) -> int:
    from mooring.objects.quantity import BadQuantity, amount

    try:
        size = amount("memory", text)
    except BadQuantity as error:
        raise click.BadParameter(f"{error}; write it as 256Mi", ctx, parameter) from error
    if size < LEAST_BYTES:
        raise click.BadParameter(f"must be at least 1Mi, got {text}", ctx, parameter)
    return size


def recording_options(command: F) -> F:
    """The flags; the command gets them among its `**flags`."""
    for option in (
        click.option(
            "--record-annotation",
            "record_annotations",
            multiple=True,
            metavar="KEY",
            help="Also record this annotation (PREFIX* for several), if a plugin reads it. May be given several times.",
        ),
        click.option(
            "--record-limit",
            cls=Flag,
            default="256Mi",
            show_default=True,
            metavar="SIZE",
            callback=_size,
            help="How large the recording may become; the oldest part goes.",
        ),
        click.option(
            "--record",
            cls=Flag,
            metavar="FILE",
            default=None,
            help="Record what the scheduler sees and decides, for `mooring replay`. A recording is continued.",
        ),
    ):
        command = option(command)
    return command


def recording_flags(flags: dict[str, Any]) -> RecordingFlags:
    """Takes the flags out."""
    return RecordingFlags(flags.pop("record") or None, flags.pop("record_limit"), flags.pop("record_annotations"))


@contextlib.contextmanager
def recording_to(
    flags: RecordingFlags, server: str, *, most_items: int | None = None, is_simulation: bool = False
) -> Iterator[Recorder | None]:
    """While inside, what the recorder gets is written to the file; None without one.

    A cluster's scheduler goes on without a recording. `is_simulation`: standard output is for results, and a recording
    that cannot be written is an operator's mistake: at once, or after the results where the disk is full.
    """
    if flags.file is None:
        yield None
        return
    from mooring.recording import Recorder, RecordingWriter

    recorder = Recorder() if most_items is None else Recorder(most_items)
    writer = RecordingWriter(
        flags.file, recorder, limit_bytes=flags.limit_bytes, keep_annotations=flags.annotations, server=server
    )
    with writer:
        # A simulation mutes the log: what is wrong with the file must be logged before.
        writer.opened()
        if is_simulation and writer.problem is not None:
            raise OperatorMistake.found_in("the command line", [Problem("--record", writer.problem)])
        yield recorder
    if writer.problem is not None:
        if is_simulation:
            raise OperatorMistake(f"the recording has ended: {writer.problem}.")
    else:
        missing = f"; {recorder.dropped} decisions are missing, the writer fell behind" if recorder.dropped else ""
        print_line(f"Recorded to {flags.file}{missing}. `mooring replay {flags.file}` shows it.", err=is_simulation)
