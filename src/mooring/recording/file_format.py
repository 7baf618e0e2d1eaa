"""The file of a recording: JSON Lines in gzip members, each of at most some megabytes; `zcat` and `jq` read it.

Within a member the compressor is flushed after every batch of rows. So a file that ends anywhere, because the scheduler
was killed or still writes, is read up to its last whole line. A segment begins with a member of its own: to drop the
oldest segment is to copy the file without its first bytes.
"""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from mooring import __version__
from mooring.base.errors import Fault, OperatorMistake
from mooring.base.nesting import decode
from mooring.recording.rows import HEADER_PREFIX, MARK, VERSION, SegmentHeader

GZIP = 31
"""zlib's number for a window of 32 KiB in a gzip member."""
COMPRESSION = 1
MOST_MEMBER_BYTES = 1024 * 1024
"""After so many bytes of rows a member ends: to read one decision again, one member is decompressed."""
LARGEST_MEMBER_BYTES = 256 * 1024 * 1024
"""What a reader accepts: one object of a cluster may be large, and a small file may expand to any size."""
MOST_LINE_BYTES = 64 * 1024 * 1024
FEWEST_LINES, LINES_PER_BYTE = 1_000_000, 1
"""A file may have so many lines, or so many for each of its bytes: those of a scheduler have one for 25."""
EXPANSION = 200
"""So many times its size a file may expand to, or to the largest member: those of a scheduler expand 11 times."""
CHUNK_BYTES = 1024 * 1024
SALVAGE_BYTES = 256


class Member(NamedTuple):
    """Some lines of the file."""

    offset: int
    end: int
    lines: list[bytes]
    is_whole: bool
    """It has its trailer, with a checksum that is right."""


def members(path: Path | str, offset: int = 0, *, begins_with: bytes = b"") -> Iterator[Member]:
    """One after the other, from a place where one begins. The last may be cut off; one that is damaged is the last.

    With `begins_with` only those whose text begins so are read as a whole; the others have no lines.
    """
    with open(path, "rb") as file:
        room = _Room(path, os.fstat(file.fileno()).st_size)
        file.seek(offset)
        pending = file.read(CHUNK_BYTES)
        while pending:
            found = _member(file, offset, pending, begins_with, room)
            if found is None:
                return
            member, pending = found
            yield member
            if not member.is_whole:
                return
            offset = member.end
            pending = pending or file.read(CHUNK_BYTES)


class _Room:
    """How much a file may expand to: a small one may expand to any size, and to any number of lines."""

    def __init__(self, path: Path | str, size: int) -> None:
        self._path = path
        self._most_bytes = max(LARGEST_MEMBER_BYTES, EXPANSION * size)
        self._most_lines = max(FEWEST_LINES, LINES_PER_BYTE * size)
        self._bytes = self._lines = 0

    def take(self, text: bytes) -> None:
        """Raises OperatorMistake where there is none left, before the text is taken apart."""
        self._bytes += len(text)
        self._lines += text.count(b"\n")
        if self._bytes > self._most_bytes:
            raise damaged(self._path, f"it expands to more than {self._most_bytes:,} bytes")
        if self._lines > self._most_lines:
            raise damaged(self._path, f"it has more than {self._most_lines:,} lines")


def _salvaged(path: str, offset: int, room: _Room) -> list[bytes]:
    """What can be read of a member before the place where it is damaged: step by step, as an error discards a step."""
    decompressor, parts, size = zlib.decompressobj(GZIP), [], 0
    with open(path, "rb") as file, contextlib.suppress(zlib.error):
        file.seek(offset)
        while size < LARGEST_MEMBER_BYTES and not decompressor.eof and (piece := file.read(SALVAGE_BYTES)):
            parts.append(decompressor.decompress(piece))
            size += len(parts[-1])
            room.take(parts[-1])
    return parts


def _member(
    file: IO[bytes], offset: int, pending: bytes, begins_with: bytes, room: _Room
) -> tuple[Member, bytes] | None:
    """A member and the bytes behind it that have been read; None: nothing of it can be read."""
    decompressor, parts, size, read = zlib.decompressobj(GZIP), [], 0, 0
    try:
        while not decompressor.eof and pending:
            read += len(pending)
            while pending and not decompressor.eof:
                text = decompressor.decompress(pending, CHUNK_BYTES)
                pending = decompressor.unconsumed_tail
                size += len(text)
                room.take(text)
                parts.append(text)
                if size > LARGEST_MEMBER_BYTES:
                    raise damaged(file.name, f"a part of it expands to more than {LARGEST_MEMBER_BYTES:,} bytes")
                if begins_with and parts[0] and not parts[0].startswith(begins_with):
                    parts = [b"-"]
            pending = b"" if decompressor.eof else file.read(CHUNK_BYTES)
    except zlib.error:
        parts = _salvaged(file.name, offset, room)
        if not parts:
            return None
    is_whole, rest = decompressor.eof, decompressor.unused_data
    text = b"".join(parts)
    lines = text.split(b"\n")
    lines.pop()  # behind the last line break: nothing, or half a line
    if size > MOST_LINE_BYTES and any(len(line) > MOST_LINE_BYTES for line in lines):
        raise damaged(file.name, f"a row has more than {MOST_LINE_BYTES:,} bytes")
    return Member(offset, offset + read - len(rest), lines, is_whole), rest


def read_header(path: Path | str) -> SegmentHeader:
    """The header of the file, or what is wrong with it."""
    try:
        if os.path.getsize(path) == 0:
            raise OperatorMistake(f"The recording {path} is empty: nothing had been written yet when it ended.")
        first = next(members(path), None)
    except OSError as error:
        raise OperatorMistake(f"The recording {path} cannot be read: {error.strerror}.") from error
    if first is None or not first.lines:
        with open(path, "rb") as file:
            begins = file.read(2)
        if begins == b"\x1f\x8b":
            raise OperatorMistake(f"The recording {path} ends before its first row: nothing of it can be read.")
        raise no_recording(path)
    return header_of(path, first.lines[0])


def header_of(path: Path | str, line: bytes) -> SegmentHeader:
    try:
        found = decode(line)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict) or found.get("mooring") != MARK or not line.startswith(HEADER_PREFIX):
        raise no_recording(path)
    version = found.get("version")
    if not isinstance(version, int) or version < 1:
        raise damaged(path, "its version is missing")
    if version > VERSION:
        by = found.get("mooringVersion")
        written = f" It was written by Mooring {by}." if isinstance(by, str) else ""
        raise OperatorMistake(
            f"{path} is a recording of version {version}, and this Mooring ({__version__}) reads versions up to "
            f"{VERSION}.{written} Use that Mooring or a newer one."
        )
    try:
        header: SegmentHeader = decode(line, SegmentHeader)
    except msgspec.DecodeError as error:
        raise damaged(path, f"its header cannot be decoded: {error}") from error
    return header


def damaged(path: Path | str, why: str) -> OperatorMistake:
    return OperatorMistake(f"The recording {path} is damaged: {why}. Copy it again, or record another.")


@contextlib.contextmanager
def rows_of(path: Path | str) -> Iterator[None]:
    """Inside, rows are applied that a file may have in any order and with any content: what they break is damage."""
    try:
        yield
    except _BY_DAMAGE as error:
        raise damaged(path, f"a row cannot be applied: {type(error).__name__}: {error}") from error


_BY_DAMAGE = (msgspec.MsgspecError, LookupError, ValueError, TypeError, AttributeError, ArithmeticError, Fault)


def no_recording(path: Path | str) -> OperatorMistake:
    return OperatorMistake(
        f"{path} is no recording of Mooring. `mooring run --record FILE` and `mooring up --record FILE` write one."
    )
