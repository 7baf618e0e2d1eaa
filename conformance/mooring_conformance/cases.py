"""Cases and what kube-scheduler decided about them: one `{"case": …, "expect": …}` a line, perhaps compressed."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.files import open_to_append
from mooring.base.nesting import decode
from mooring.base.visible import visible_json

RECORDED = Path(__file__).parent / "recorded"
"""What was recorded from kube-scheduler v1.36.4, a file for each family."""

_OPENERS: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".xz": lzma.open}


class Case(msgspec.Struct, rename="camel"):
    """A configuration, the objects of a cluster, and the pod to decide about. Objects stay as they came."""

    name: str = ""
    config: msgspec.Raw = msgspec.Raw(b"null")
    feature_gates: dict[str, bool] | None = None
    objects: list[msgspec.Raw] = []
    pod: msgspec.Raw = msgspec.Raw(b"{}")


class Recorded(msgspec.Struct):
    """A case and what the real kube-scheduler decided."""

    case: Case
    expect: dict[str, Any]


def recorded_files() -> list[Path]:
    return sorted(RECORDED.glob("*.jsonl.xz"))


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
    """One more line."""
    try:
        with open_to_append(file) as lines:
            lines.write(visible_json(msgspec.json.encode(recorded).decode()).encode() + b"\n")
    except OSError as error:
        raise OperatorMistake(f"{file} cannot be written: {error.strerror}.") from error


def numbered(file: Path) -> Iterator[tuple[str, bytes]]:
    """The lines of a file with where they stand."""
    return ((f"{file}:{number}", line) for number, line in enumerate(read(file), 1))


def _plain(file: Path) -> IO[bytes]:
    return file.open("rb")
