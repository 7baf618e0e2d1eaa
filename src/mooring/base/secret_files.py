"""Secrets that need a file for a moment: in memory where the system can, and not on a disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


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
