"""The file of a snapshot: compressed JSON Lines.

    {"mooring":"snapshot","version":1,"takenAt":…,"serverVersion":…,"counts":{"pods":2},"leftOut":[…],"anonymized":false}
    {"apiVersion":"v1","kind":"Pod","metadata":{…},"spec":{…},"status":{…}}
    …
    {"mooring":"end","objects":3}

`zcat` and `jq` read it. The counts in the first line and the last line show whether a file is whole. While a snapshot
is taken its objects are in a temporary file without a name, compressed, one gzip member for each kind: so the first
line can be written last, and a list that expires half-way is begun again. A reader takes one line after the other, and
bounds the length of a line and of the whole: a small file may expand to any size.
"""

from __future__ import annotations

import gzip
import os
import shutil
import stat
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from mooring import __version__
from mooring.base.errors import OperatorMistake
from mooring.base.files import writing_private
from mooring.base.nesting import decode
from mooring.objects.meta import KubeObject
from mooring.snapshots.pruning import Document

VERSION = 1
MOST_LINE_BYTES = 32 * 1024 * 1024
"""An API server stores objects of 1.5 MB unless it is configured otherwise."""
MOST_BYTES = 4 * 1024 * 1024 * 1024
"""100,000 pods have about 150 MB."""
_MAGIC = b"\x1f\x8b"
_MARK, _SNAPSHOT, _END = "mooring", "snapshot", "end"
_COMPRESSION = 6

K = TypeVar("K", bound=KubeObject)
_encode = msgspec.json.Encoder().encode


class LeftOut(msgspec.Struct, rename="camel", frozen=True):
    """A kind that is not in the snapshot, and why."""

    kind: str
    """As `kubectl get` names it: `resourceslices.resource.k8s.io`."""
    reason: str
    """`forbidden`, `not served` or `never saved`."""


class Header(msgspec.Struct, rename="camel", frozen=True):
    """The first line of a snapshot."""

    taken_at: str
    server_version: str = ""
    counts: dict[str, int] = {}
    """Objects of each kind, as `kubectl get` names it."""
    left_out: list[LeftOut] = []
    anonymized: bool = False
    annotations: list[str] = []
    """What was kept besides the annotations that scheduling reads."""
    mooring_version: str = __version__
    version: int = VERSION

    @property
    def objects(self) -> int:
        return sum(self.counts.values())


class Spool:
    """The objects of a snapshot that is being written, compressed, in a temporary file that has no name."""

    def __init__(self, folder: Path | None = None) -> None:
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by __exit__)
        self.counts: Counter[str] = Counter()
        self._kind = ""
        self._begin = 0
        self._member: gzip.GzipFile | None = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._drop()
        with suppress(OSError):  # a full disk has been reported
            self.file.close()

    def begin(self, kind: str) -> None:
        """What follows is of this kind, as `kubectl get` names it."""
        self.finish()
        self._kind, self._begin = kind, self.file.tell()
        self._member = _compressor(self.file)

    def again(self) -> None:
        """Forget the objects since `begin`."""
        self._drop()
        self.file.seek(self._begin)
        self.file.truncate()
        del self.counts[self._kind]
        self._member = _compressor(self.file)

    def add(self, document: Document) -> None:
        assert self._member is not None
        self._member.write(_encode(document) + b"\n")
        self.counts[self._kind] += 1

    def finish(self) -> None:
        """End the kind; what has been written can be read."""
        if self._member is not None:
            self._member.close()
            self._member = None
            if not self.counts[self._kind]:
                del self.counts[self._kind]
        self.file.flush()

    def _drop(self) -> None:
        """Close the compressor, which writes to the file even when nothing of it is wanted."""
        member, self._member = self._member, None
        if member is not None:
            with suppress(OSError):
                member.close()

    def documents(self) -> Iterator[Document]:
        """All objects that were added; none is added while they are read."""
        self.finish()
        self.file.seek(0)
        with gzip.open(self.file) as lines:
            for line in lines:
                yield decode(line)


def write_snapshot(path: Path | str, header: Header, spool: Spool) -> int:
    """Write header, objects and closing line to `path`, whole or not at all. Returns the size in bytes."""
    spool.finish()
    assert header.objects == spool.counts.total(), "the header is of this spool"
    first = {_MARK: _SNAPSHOT, "version": VERSION} | msgspec.to_builtins(header)
    last = {_MARK: _END, "objects": header.objects}
    parts = [gzip.compress(_encode(each) + b"\n", _COMPRESSION, mtime=0) for each in (first, last)]
    with writing_private(path) as file:
        file.write(parts[0])
        spool.file.seek(0)
        shutil.copyfileobj(spool.file, file, 1024 * 1024)
        file.write(parts[1])
    return len(parts[0]) + spool.file.tell() + len(parts[1])


def _compressor(file: IO[bytes]) -> gzip.GzipFile:
    return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=_COMPRESSION, mtime=0)


class Snapshot:
    """A snapshot in a file. Each iteration reads the file again, and raises OperatorMistake where it is damaged."""

    def __init__(self, path: Path | str, header: Header) -> None:
        self.path = path
        self.header = header

    def documents(self) -> Iterator[Document]:
        """All objects, as an API server would show them."""
        return (document for _, document in self.numbered())

    def numbered(self) -> Iterator[tuple[int, Document]]:
        """All objects, each with its line."""
        for number, line in self._objects():
            yield number, self._decoded(number, line, Document)

    def objects(self, *types: type[K]) -> Iterator[K]:
        """The objects of these kinds, in one pass; objects of other kinds are not decoded."""
        wanted = {(type_.KIND.api_version, type_.KIND.kind): type_ for type_ in types}
        for number, line in self._objects():
            about: _About = self._decoded(number, line, _About)
            if (type_ := wanted.get((about.api_version, about.kind))) is not None:
                yield self._decoded(number, line, type_)

    def _objects(self) -> Iterator[tuple[int, bytes]]:
        """The lines between the first and the last, and whether they are as many as those two promise."""
        lines = _lines(self.path)
        next(lines)
        expected, found = self.header.objects, 0
        for number, line in enumerate(lines, start=2):
            if line.startswith(b'{"mooring":"end"'):
                end: _End = self._decoded(number, line, _End)
                if not found == expected == end.objects:
                    raise _damaged(self.path, number, f"it has {found} objects of {max(expected, end.objects)}")
                if next(lines, None) is not None:
                    raise _damaged(self.path, number + 1, "text follows the closing line")
                return
            found += 1
            if found > expected:
                raise _damaged(self.path, number, f"it has more objects than the {expected} of its first line")
            yield number, line
        missing = f"it ends after {found} of {expected} objects, without the closing line"
        raise _damaged(self.path, found + 1, missing)

    def _decoded(self, number: int, line: bytes, type_: Any) -> Any:
        try:
            return decode(line, type_)
        except msgspec.DecodeError as error:
            raise _damaged(self.path, number, f"the line cannot be decoded: {error}") from error


class SpooledSnapshot(Snapshot):
    """A snapshot that was taken and is in no file. `source` names the cluster in messages."""

    def __init__(self, source: str, header: Header, spool: Spool) -> None:
        super().__init__(source, header)
        self._spool = spool

    def numbered(self) -> Iterator[tuple[int, Document]]:
        return enumerate(self._spool.documents(), start=2)

    def objects(self, *types: type[K]) -> Iterator[K]:
        wanted = {(type_.KIND.api_version, type_.KIND.kind): type_ for type_ in types}
        for document in self._spool.documents():
            if (type_ := wanted.get((document["apiVersion"], document["kind"]))) is not None:
                yield msgspec.convert(document, type_, strict=False)


class _About(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


class _End(msgspec.Struct):
    objects: int


def is_snapshot(path: Path | str) -> bool:
    """Whether the file begins as a snapshot does, of any version; also decompressed, and whatever its name is.

    A pipe is none: what is read of it here would be missing later.
    """
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return False
        return _marked(next(_lines(path), b"")) is not None
    except OperatorMistake:
        with open(path, "rb") as file:  # damaged in its first bytes: no other file that is accepted is compressed
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def read_snapshot(path: Path | str) -> Snapshot:
    """The snapshot at `path`: its header now, its objects as they are iterated over."""
    try:
        first = next(_lines(path), b"")
    except OSError as error:
        raise OperatorMistake(f"The snapshot {path} cannot be read: {error.strerror}.") from error
    found = _marked(first)
    if found is None:
        raise OperatorMistake(f"{path} is no snapshot of Mooring. `mooring snapshot FILE` takes one of a cluster.")
    version = found.get("version")
    if not isinstance(version, int) or version < 1:
        raise _damaged(path, 1, "its version is missing")
    if version > VERSION:
        by = found.get("mooringVersion")
        written = f" It was written by Mooring {by}." if isinstance(by, str) else ""
        raise OperatorMistake(
            f"{path} is a snapshot of version {version}, and this Mooring ({__version__}) reads versions up to "
            f"{VERSION}.{written} Use that Mooring or a newer one, or take the snapshot again with this one."
        )
    try:
        return Snapshot(path, decode(first, Header))
    except msgspec.DecodeError as error:
        raise _damaged(path, 1, f"the header cannot be decoded: {error}") from error


def _marked(line: bytes) -> Mapping[str, Any] | None:
    """The first line of a snapshot, of whichever version; None for any other file."""
    if not line.lstrip().startswith(b'{"mooring"'):
        return None
    try:
        found = decode(line)
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) and found.get(_MARK) == _SNAPSHOT else None


def _lines(path: Path | str) -> Iterator[bytes]:
    """The lines of the file, decompressed where it is compressed."""
    with open(path, "rb") as raw, _decompressed(raw) as file:
        total, number = 0, 0
        while True:
            try:
                line = file.readline(MOST_LINE_BYTES + 1)
            except EOFError as error:
                raise _damaged(path, number + 1, "the file ends there; it was not copied whole") from error
            except (gzip.BadGzipFile, zlib.error) as error:
                raise _damaged(path, number + 1, f"it cannot be decompressed: {error}") from error
            if not line:
                return
            number += 1
            total += len(line)
            if len(line) > MOST_LINE_BYTES:
                raise _damaged(path, number, f"the line has more than {MOST_LINE_BYTES:,} bytes")
            if total > MOST_BYTES:
                raise _damaged(path, number, f"it expands to more than {MOST_BYTES:,} bytes")
            yield line


def _decompressed(raw: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
    is_compressed = raw.read(len(_MAGIC)) == _MAGIC
    raw.seek(0)
    return gzip.open(raw) if is_compressed else nullcontext(raw)  # type: ignore[return-value]  # it reads alike


def _damaged(path: Path | str, line: int, why: str) -> OperatorMistake:
    return OperatorMistake(
        f"The snapshot {path} is damaged at line {line}: {why}. Copy it again, or take another with `mooring snapshot`."
    )
