"""Secrets in files: for their owner's eyes only, and on no disk where a file need not last."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


def write_private(path: Path | str, text: str) -> None:
    """Write a file that nobody else can read from its first moment on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def memory_file() -> IO[bytes]:
    """An open file without a name; in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("mooring", os.MFD_CLOEXEC), "w+b")
    return tempfile.TemporaryFile()


@contextmanager
def readable_path(data: bytes) -> Iterator[str]:
    """A path under which OpenSSL can read the bytes; in memory where the system can, so that no key lies on a disk."""
    if hasattr(os, "memfd_create"):
        with memory_file() as memory:
            memory.write(data)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name
