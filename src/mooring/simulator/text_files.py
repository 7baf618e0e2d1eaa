"""Text files of traces, also compressed: what cannot be read is an operator's mistake that names the file."""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any

from mooring.base.errors import OperatorMistake

COMPRESSED: dict[str, Callable[[str], Any]] = {".gz": gzip.GzipFile, ".xz": lzma.LZMAFile}
"""By the end of the file's name."""


@contextmanager
def text_file(path: str | Path, what: str = "The trace") -> Iterator[IO[str]]:
    """A file of UTF-8 text, with or without a byte order mark; line ends are kept, as `csv` wants them."""
    with readable(path, what), binary_file(path) as file:
        yield io.TextIOWrapper(file, encoding="utf-8-sig", newline="")


def binary_file(path: str | Path) -> IO[bytes]:
    """A file, decompressed by the end of its name."""
    file: IO[bytes] = COMPRESSED.get(Path(path).suffix.lower(), partial(open, mode="rb"))(str(path))
    return file


def uncompressed_name(path: str | Path) -> str:
    """The name, in lower case and without the end that stands for a compression."""
    name = Path(path).name.lower()
    return name.removesuffix(suffix) if (suffix := Path(name).suffix) in COMPRESSED else name


@contextmanager
def readable(path: str | Path, what: str) -> Iterator[None]:
    """Report what makes a file unreadable: `The trace x.csv cannot be read: …`."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise OperatorMistake(f"{what} {path} cannot be read: it is no UTF-8 text.") from error
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError) as error:
        why = "it is not compressed as the end of its name promises, or is cut short"
        raise OperatorMistake(f"{what} {path} cannot be read: {why}.") from error
    except OSError as error:
        raise OperatorMistake(f"{what} {path} cannot be read: {error.strerror or error}.") from error
