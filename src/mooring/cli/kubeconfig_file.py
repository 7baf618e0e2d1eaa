"""The embedded cluster's kubeconfig: written never over a file of another origin, found again by other commands."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from mooring.base.errors import OperatorMistake
from mooring.base.files import read_if_regular

if TYPE_CHECKING:
    from mooring.apiserver import EmbeddedApiServer
    from mooring.client import Connection

DEFAULT = "mooring.kubeconfig"
MARK = "current-context: mooring"


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
    if content and MARK not in content.decode("utf-8", "replace"):
        raise OperatorMistake(
            f"{path} is a kubeconfig that Mooring did not write; give --write-kubeconfig another name, "
            "so that nothing in it is lost."
        )
    if not path.parent.is_dir():
        raise OperatorMistake(f"{path.parent} is no folder; make it, or give --write-kubeconfig another name.")


def write(path: Path, server: EmbeddedApiServer) -> None:
    try:
        server.write_kubeconfig(path)
    except OSError as error:
        raise OperatorMistake(
            f"{path} cannot be written: {error.strerror}. Give --write-kubeconfig a name in a folder of your own."
        ) from error


def remove_ours(path: Path, server: str) -> None:
    """Remove the file unless it points elsewhere by now: a later cluster may have written its own there."""
    with contextlib.suppress(OSError):
        if f"server: {server}\n".encode() in (read_if_regular(path) or b""):
            path.unlink(missing_ok=True)
