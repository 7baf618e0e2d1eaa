"""Cases and what kube-scheduler decided about them: one `{"case": …, "expect": …}` a line, perhaps compressed."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring.base.earlier_output import first_line
from mooring.base.errors import OperatorMistake
from mooring.base.files import append_line, is_stream
from mooring.base.nesting import decode
from mooring.base.visible import visible_json

RECORDED = Path(__file__).parent / "recorded"
"""What was recorded from kube-scheduler v1.36.4, a file for each family."""
COMMUNITY = RECORDED / "community"
"""What was recorded from the plugins of scheduler-plugins v0.35, likewise."""

_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}


class QueuedCase(msgspec.Struct, rename="camel"):
    """A waiting pod, and since when it waits."""

    pod: str
    """`namespace/name`."""
    timestamp: str
    initial_attempt: str | None = None


class Step(msgspec.Struct, rename="camel"):
    """A call of one plugin at one extension point, for one pod."""

    op: str
    plugin: str
    pod: str
    node: str = ""
    other: str = ""


NO_POD = b"{}"


class Case(msgspec.Struct, rename="camel"):
    """A configuration, the objects of a cluster, and the pod to decide about. Objects stay as they came."""

    name: str = ""
    config: msgspec.Raw = msgspec.Raw(b"null")
    feature_gates: dict[str, bool] | None = None
    objects: list[msgspec.Raw] = []
    pod: msgspec.Raw = msgspec.Raw(NO_POD)
    metrics: dict[str, Any] | None = None
    """The response of the load watcher; None: it does not respond."""
    window_end_offset: float = 0.0
    """Its measurements end so many seconds from now."""
    queue: list[QueuedCase] = []
    """Pods whose order in the queue is compared."""
    steps: list[Step] = []
    """Single calls of plugins, before the pod is decided."""

    @property
    def decides(self) -> bool:
        """Whether there is a pod to decide about; other cases are about a queue, and about single calls."""
        return not self.queue and bytes(self.pod) != NO_POD


class Recorded(msgspec.Struct):
    """A case and what the real kube-scheduler decided."""

    case: Case
    expect: dict[str, Any]


def recorded_files() -> list[Path]:
    """Those of kube-scheduler, then those of the community plugins."""
    return [*sorted(RECORDED.glob("*.jsonl.xz")), *community_files()]


def community_files() -> list[Path]:
    return sorted(COMMUNITY.glob("*.jsonl.xz"))


def family_of(file: Path) -> str:
    return file.name.partition(".jsonl")[0]


def read(file: Path) -> Sequence[bytes]:
    """The lines of a file, one case each; they are decoded where they are run."""
    try:
        with _OPENERS.get(file.suffix, _plain)(file) as lines:
            return [line for line in lines if line.strip()]
    except OSError as error:
        raise OperatorMistake(f"{file} cannot be read: {error.strerror or error}.") from error
    except (EOFError, lzma.LZMAError) as error:
        raise OperatorMistake(f"{file} cannot be read: {error}.") from error


def decoded(line: bytes, where: str) -> Recorded:
    """The case of one line."""
    try:
        case: Recorded = decode(line, Recorded)
    except msgspec.DecodeError as error:
        raise OperatorMistake(f'{where} holds no {{"case": …, "expect": …}}: {error}.') from error
    return case


def append(file: Path, recorded: dict[str, Any]) -> None:
    """One more line; a file that has anything but cases is left alone."""
    check_appendable(file)
    try:
        append_line(file, visible_json(msgspec.json.encode(recorded).decode()).encode())
    except OSError as error:
        raise OperatorMistake(f"{file} cannot be written: {error.strerror}.") from error


def check_appendable(file: Path) -> None:
    """`OperatorMistake` unless cases can be added: to those that are there, or where there is nothing yet."""
    if is_stream(file) or file.is_symlink() or not file.is_file() or not file.stat().st_size:
        return  # what is no regular file is refused when it is opened
    if not first_line(file).startswith('{"case":') or file.suffix in _OPENERS:
        raise OperatorMistake(f"{file} exists and has no cases to add to; name another file, or remove it.")


def numbered(file: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a file with where they stand."""
    return ((f"{file}:{number}", line) for number, line in enumerate(read(file), 1))


def _plain(file: Path) -> IO[bytes]:
    return file.open("rb")
