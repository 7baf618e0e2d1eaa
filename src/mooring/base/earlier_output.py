"""Whether the file at an output's name is what an earlier run of the same kind wrote, and may be replaced.

A format with room for it carries a mark. A table is known by its header; Parquet by an entry of its metadata.
"""

from __future__ import annotations

import gzip
import lzma
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HEAD_BYTES = 64 * 1024
_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
_PARQUET = b"PAR1"
_MOST_FOOTER_BYTES = 16 * 1024 * 1024


def head_of(path: Path | str) -> bytes:
    """How a file begins, decompressed by the end of its name; nothing where it cannot be read so."""
    opener = _OPENERS.get(Path(path).suffix.lower(), open)
    try:
        with opener(path, "rb") as file:
            head: bytes = file.read(_HEAD_BYTES)
            return head
    except (OSError, EOFError, zlib.error, lzma.LZMAError):
        return b""


def first_line(path: Path | str) -> str:
    """The first line, or as much of it as is looked at."""
    return head_of(path).partition(b"\n")[0].decode("utf-8", "replace").rstrip("\r")


def has_parquet_entry(path: Path | str, key: str) -> bool:
    """Whether the metadata at the end of a Parquet file has this key."""
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            if size < 12:
                return False
            file.seek(size - 8)
            end = file.read(8)
            length = int.from_bytes(end[:4], "little")
            if end[4:] != _PARQUET or length > min(size - 12, _MOST_FOOTER_BYTES):
                return False
            file.seek(size - 8 - length)
            return key.encode() in file.read(length)
    except OSError:
        return False
