"""The embedded cluster's kubeconfig: never written over a file of another origin, found again by other commands.

The process of the cluster holds the file for as long as it lives. Another cluster that is to write to the same name is
refused meanwhile; a file that a killed cluster left is replaced. At its end a cluster removes only its own file.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mooring.base.errors import OperatorMistake
from mooring.base.files import hold_private, is_held, read_if_regular

if TYPE_CHECKING:
    from mooring.apiserver import EmbeddedApiServer
    from mooring.client import Connection

DEFAULT = "mooring.kubeconfig"
_MARK = b"# The embedded cluster of mooring, process "
_PROCESS = re.compile(re.escape(_MARK) + rb"(\d+)\.$", re.MULTILINE)


def connection_here(kubeconfig: str | None, environ: Mapping[str, str] = os.environ) -> Connection:
    """The cluster of a command that is run beside `mooring up`: by flag, $KUBECONFIG, or one's own file here."""
    from mooring.client import find_connection, load_own_kubeconfig

    if not kubeconfig and not environ.get("KUBECONFIG") and os.path.lexists(DEFAULT):
        return load_own_kubeconfig(DEFAULT, environ=environ)
    return find_connection(kubeconfig=kubeconfig, environ=environ)


def check_writable(path: Path) -> None:
    """Refuse before anything is started if writing there would lose something or cannot work."""
    if path.is_dir():
        raise OperatorMistake(f"{path} is a folder; give --write-kubeconfig the name of a file.")
    try:
        content = read_if_regular(path)
    except OSError as error:
        raise OperatorMistake(
            f"{path} cannot be replaced: {error.strerror}. Remove it, or give --write-kubeconfig another name."
        ) from error
    if content and not content.startswith(_MARK):
        raise OperatorMistake(
            f"{path} is a file that Mooring did not write; give --write-kubeconfig another name, "
            "so that nothing in it is lost."
        )
    if content and is_held(path):
        raise _in_use(path, content)
    if not path.parent.is_dir():
        raise OperatorMistake(f"{path.parent} is no folder; make it, or give --write-kubeconfig another name.")


def write(path: Path, server: EmbeddedApiServer, process: int) -> IO[bytes] | None:
    """Write the file, which stays locked for as long as the result is kept. `process` is the one to stop."""
    text = f"{_MARK.decode()}{process}.\n{server.kubeconfig_text()}"
    try:
        return hold_private(path, text)
    except BlockingIOError as error:
        raise _in_use(path, read_if_regular(path) or b"") from error
    except OSError as error:
        raise OperatorMistake(
            f"{path} cannot be written: {error.strerror}. Give --write-kubeconfig a name in a folder of your own."
        ) from error


def remove_ours(path: Path, token: str) -> None:
    """Remove the file unless it is another cluster's by now: every cluster has a token of its own."""
    with contextlib.suppress(OSError):
        if token and token.encode() in (read_if_regular(path) or b""):
            path.unlink(missing_ok=True)


def _in_use(path: Path, content: bytes) -> OperatorMistake:
    found = _PROCESS.search(content)
    process = f" (process {found[1].decode()})" if found else ""
    return OperatorMistake(
        f"{path} is the kubeconfig of another embedded cluster, which is running{process}. Stop that one first, or "
        f"give this one a file of its own: --write-kubeconfig {_another_name(path)}."
    )


def _another_name(path: Path) -> Path:
    """A name beside it that is free."""
    return next(
        other
        for number in range(2, 1_000_000)
        if not os.path.lexists(other := path.with_name(f"{path.stem}-{number}{path.suffix}"))
    )
