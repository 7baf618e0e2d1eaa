"""A kubeconfig that no flag and no variable named, such as ./mooring.kubeconfig: used only if it is one's own file.

A folder may be shared. Another user who puts a kubeconfig there would choose the cluster, and with `exec` the program,
of everyone who runs a command in it. So the file must be a regular one that belongs to the user and that others cannot
write; then its content is the user's own whatever the folder allows. A program it names is not run all the same. A
file that is named explicitly is used as it is.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from mooring.base.errors import OperatorMistake
from mooring.client.connection import Connection
from mooring.client.kubeconfig import load_kubeconfig


def load_own_kubeconfig(path: Path | str, *, environ: Mapping[str, str] = os.environ) -> Connection:
    """The connection of its current context. Raises `OperatorMistake` with the remedy if the file is not used."""
    connection = load_kubeconfig([path], environ=environ, read=_read_own)
    if connection.exec is not None:
        raise _not_used(path, f"its user names a program to run ({connection.exec.command})")
    return connection


def _read_own(path: Path) -> bytes:
    """The bytes of the very file that was checked."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise _not_used(path, "it is a symbolic link") from error
        raise
    try:
        if (why_not := _distrusted(os.fstat(descriptor), path)) is not None:
            raise _not_used(path, why_not)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def _distrusted(found: os.stat_result, path: Path) -> str | None:
    if not stat.S_ISREG(found.st_mode):
        return "it is no regular file"
    if found.st_uid != os.geteuid():
        return f"it belongs to another user (uid {found.st_uid})"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        mode = stat.S_IMODE(found.st_mode)
        return f"other users can write to it (mode {mode:04o}; chmod 600 {path} changes that)"
    if found.st_nlink != 1:
        return "it is a hard link to another file"
    return None


def _not_used(path: Path | str, why: str) -> OperatorMistake:
    return OperatorMistake(
        f"The kubeconfig {path} is not used: {why}. If you trust it, name it: "
        f"--kubeconfig {path}. To use another one, set --kubeconfig or KUBECONFIG."
    )
