"""The thread that writes a recording: encodes, compresses, begins segments, drops the oldest.

A problem of the file ends the recording and never the scheduler: it is logged once, with what to do.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.files import PRIVATE, open_to_append, writing_private
from mooring.base.log import Log
from mooring.recording import rows
from mooring.recording.encoding import RowEncoder
from mooring.recording.file_format import COMPRESSION, GZIP, MOST_MEMBER_BYTES, header_of, members
from mooring.recording.ledger import Ledger
from mooring.recording.recorder import Item, Recorder, What

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
SEGMENTS = 4
"""About so many in a file that is full."""
PUT_ITEMS = 32
"""Compressed at once: some ten kilobytes. Other threads run meanwhile."""
BUFFERED_BYTES = 64 * 1024
"""The compressor holds back less than this until it is flushed."""
FLUSH_SECONDS = 1.0
"""What a killed scheduler loses at most."""
MOST_AT_ONCE = 2_000
_log = Log("recording")


class RecordingWriter:
    """Writes what the recorder buffers into a file, on a thread of its own. Used by `with`."""

    def __init__(
        self,
        path: Path | str,
        recorder: Recorder,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        keep_annotations: Iterable[str] = (),
        server: str = "",
    ) -> None:
        self.path = Path(path)
        self.problem: str | None = None
        """Why it has ended early."""
        self._recorder = recorder
        self._limit = limit_bytes
        self._header = rows.SegmentHeader(server=server, annotations=sorted(keep_annotations))
        self._encoder = RowEncoder(Ledger(), keep_annotations)
        self._file: IO[bytes] | None = None
        self._compressor: Any = None
        self._member_bytes = 0
        self._member_begin = 0
        self._size = 0
        """Up to here all is written."""
        self._segments: list[int] = []
        """Where they begin."""
        self._state_bytes = 0
        self._is_stopping = threading.Event()
        self._is_open = threading.Event()
        self._is_ours = False
        """Whether the file has nothing but a recording."""
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)

    def __enter__(self) -> RecordingWriter:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping.set()
        self._recorder.wake.set()
        self._thread.join(timeout=10.0)

    def opened(self) -> None:
        """Wait until the file is open, or cannot be."""
        self._is_open.wait()

    def wait(self) -> None:
        """Wait until the recording has ended by itself."""
        self._thread.join()

    # The thread

    def _run(self) -> None:
        try:
            self._open()
            self._is_open.set()
            while not self._is_stopping.is_set():
                self._recorder.wake.wait(FLUSH_SECONDS)
                self._recorder.wake.clear()
                self._drain()
            self._drain(is_last=True)
            self._close()
        except OperatorMistake as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(_described(self.path, error))
        except Exception as error:  # whatever it is: the scheduler goes on
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, problem: str) -> None:
        self.problem = problem
        self._recorder.stop()
        _log.error("The recording has ended; the scheduler goes on without it", file=str(self.path), reason=problem)
        self._is_open.set()
        with contextlib.suppress(OSError, ValueError):
            if self._file is not None:
                if self._is_ours:
                    self._truncate()
                self._file.close()

    def _drain(self, *, is_last: bool = False) -> None:
        add_lines = self._encoder.add_lines
        while items := self._recorder.take(MOST_AT_ONCE, is_last=is_last):
            for begin in range(0, len(items), PUT_ITEMS):
                batch = items[begin : begin + PUT_ITEMS]
                lines: list[bytes] = []
                for item in batch:
                    if item[0] >= What.CONFIGURED:
                        self._notice(item)
                    add_lines(item, lines)
                self._put(lines)
                if self._size - self._segments[-1] >= max(self._limit // SEGMENTS, 2 * self._state_bytes):
                    self._begin_segment(batch[-1][1])
            self._flush()

    def _notice(self, item: Item) -> None:
        if item[0] is What.CONFIGURED:
            self._adopt(item[2], *item[3])
        elif item[2]:
            _log.warning("The recording fell behind; decisions are missing in it", decisions=item[2])

    def _adopt(
        self, configuration: dict[str, Any], profiles: list[str], kinds: list[str], gates: dict[str, bool]
    ) -> None:
        self._header = msgspec.structs.replace(
            self._header, configuration=configuration, profiles=profiles, kinds=kinds, feature_gates=gates
        )

    # The file

    def _open(self) -> None:
        is_new = not os.path.lexists(self.path)
        self._file = open_to_append(self.path)
        descriptor = self._file.fileno()
        _lock(descriptor)
        last = self._continue() if os.fstat(descriptor).st_size else None
        os.fchmod(descriptor, PRIVATE)
        self._header = msgspec.structs.replace(self._header, segment=last.segment if last is not None else 0)
        self._is_ours = True
        try:
            self._begin_segment(time.time())
        except OSError:
            if is_new:
                self._remove()
            raise

    def _remove(self) -> None:
        """A recording that could not be begun leaves no file."""
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _continue(self) -> rows.SegmentHeader | None:
        """What an earlier run recorded stays: find its segments, and complete a member that was cut off."""
        last: rows.SegmentHeader | None = None
        for member in members(self.path):
            if member.lines and member.lines[0].startswith(rows.HEADER_PREFIX):
                last = header_of(self.path, member.lines[0])
                self._segments.append(member.offset)
            if last is None:
                break
            self._size = member.end
            for line in reversed(member.lines):
                if line.startswith(rows.DECISION_PREFIXES):
                    self._encoder.number = msgspec.json.decode(line, type=_Numbered).number
                    break
            if not member.is_whole:
                self._size = member.offset
                self._truncate()
                self._write(zlib_member(member.lines))
        if last is None:
            raise OperatorMistake(f"{self.path} exists and is no recording: name another file, or remove it")
        self._truncate()
        return last

    def _truncate(self) -> None:
        assert self._file is not None
        os.ftruncate(self._file.fileno(), self._size)

    def _begin_segment(self, now: float) -> None:
        self._end_member()
        self._segments.append(self._size)
        self._header = msgspec.structs.replace(self._header, segment=self._header.segment + 1, time=now)
        self._put([rows.encode(self._header)])
        for row in self._encoder.ledger.rows(now):
            self._put([rows.encode(row)])
        self._flush()
        self._state_bytes = self._size - self._segments[-1]
        if self._size > self._limit - self._limit // SEGMENTS - BUFFERED_BYTES and len(self._segments) > 1:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        """Copy the file without its oldest segments, so that it stays below its limit until the next one begins."""
        assert self._file is not None
        self._end_member()
        room = self._limit - max(self._limit // SEGMENTS, 2 * self._state_bytes) - BUFFERED_BYTES
        kept = next((begin for begin in self._segments if self._size - begin <= room), self._segments[-1])
        if kept == self._segments[0]:
            return
        with open(self.path, "rb") as whole, writing_private(self.path) as draft:
            whole.seek(kept)
            shutil.copyfileobj(whole, draft, 1024 * 1024)
        shorter = open_to_append(self.path)
        _lock(shorter.fileno())
        self._file.close()
        self._file = shorter
        self._size -= kept
        self._segments = [begin - kept for begin in self._segments if begin >= kept]

    def _put(self, lines: list[bytes]) -> None:
        if not lines:
            return
        if self._compressor is None:
            self._compressor, self._member_bytes = zlib.compressobj(COMPRESSION, wbits=GZIP), 0
        text = b"\n".join((*lines, b""))
        self._write(self._compressor.compress(text))
        self._member_bytes += len(text)
        if self._member_bytes >= MOST_MEMBER_BYTES:
            self._end_member()

    def _flush(self) -> None:
        if self._compressor is not None:
            self._write(self._compressor.flush(zlib.Z_SYNC_FLUSH))

    def _end_member(self) -> None:
        if self._compressor is not None:
            self._write(self._compressor.flush())
            self._compressor = None

    def _write(self, data: bytes) -> None:
        assert self._file is not None
        view = memoryview(data)
        while view:
            written = self._file.write(view)
            view = view[written:]
        self._size += len(data)

    def _close(self) -> None:
        assert self._file is not None
        self._put([rows.encode(rows.Closed(time=time.time(), dropped=self._recorder.dropped))])
        self._end_member()
        self._file.close()


class _Numbered(msgspec.Struct):
    number: int = 0


def zlib_member(lines: Iterable[bytes]) -> bytes:
    """A whole member of these lines."""
    compressor = zlib.compressobj(COMPRESSION, wbits=GZIP)
    return b"".join([*(compressor.compress(line + b"\n") for line in lines), compressor.flush()])


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            raise OSError(errno.EWOULDBLOCK, "another process records there; name another file") from error


def _described(path: Path, error: OSError) -> str:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            hint = "the disk is full: free some space, or set a lower --record-limit, and restart"
        case errno.ENOENT | errno.ENOTDIR:
            hint = "its folder does not exist: create it, or name another file"
        case errno.EACCES | errno.EPERM | errno.EROFS:
            hint = "name a file in a folder that you may write to"
        case _:
            hint = ""
    return f"{path} cannot be written: {error.strerror}" + (f"; {hint}" if hint else "")
