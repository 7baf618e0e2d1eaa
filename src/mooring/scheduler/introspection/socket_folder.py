"""Where schedulers of one user put their control sockets, and the user at the other end of one.

The folder is in $XDG_RUNTIME_DIR, or in the folder for temporary files, where others may write: the first to come makes
it. So both sides look before they use it. It must be a folder and no link to one, of this user, that no other user can
enter; and the process at the other end of a socket must run as this user, or as root.
"""

from __future__ import annotations

import errno
import hashlib
import os
import socket
import stat
import struct
import sys
import tempfile
from pathlib import Path

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERCRED, _DARWIN_XUCRED_BYTES = 0, 1, 76


def socket_folder() -> Path:
    """Its name; whether it is there, and whose it is, is not known yet."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime) / "mooring" if runtime else Path(tempfile.gettempdir()) / f"mooring-{os.geteuid()}"


def digest(server: str) -> str:
    """Of an API server's address: how the names of its schedulers' sockets begin."""
    return hashlib.sha256(server.rstrip("/").encode()).hexdigest()[:16]


def make_socket_folder() -> Path:
    """The folder, made if it is missing. Raises OSError if it is not for this user alone."""
    folder = socket_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        _check_owner(folder, os.lstat(folder))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.fchmod(descriptor, 0o700)  # ours, from a time with another umask
        finally:
            os.close(descriptor)
    check_socket_folder(folder)
    return folder


def check_socket_folder(folder: Path) -> None:
    """Raise OSError with a sentence unless the folder is for this user alone; FileNotFoundError if there is none."""
    found = os.lstat(folder)
    _check_owner(folder, found)
    if found.st_mode & _OTHERS:
        raise PermissionError(
            errno.EPERM,
            f"{folder} can be entered by other users (mode {stat.S_IMODE(found.st_mode):04o}); chmod 700 it",
        )


def _check_owner(folder: Path, found: os.stat_result) -> None:
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is a link or a file and not a folder; remove it")
    if found.st_uid != os.geteuid():
        raise PermissionError(
            errno.EPERM,
            f"{folder} belongs to another user (uid {found.st_uid}); set XDG_RUNTIME_DIR to a folder of yours",
        )


def check_socket(path: Path) -> None:
    """Raise OSError with a sentence unless this is a socket of this user."""
    found = os.lstat(path)
    if not stat.S_ISSOCK(found.st_mode):
        raise OSError(errno.ENOTSOCK, f"{path} is not a socket; remove it")
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"{path} belongs to another user (uid {found.st_uid}); remove it")


def is_trusted(connection: socket.socket) -> bool:
    """Whether the peer runs as this user or as root. Where the system does not show that, the folder's mode decides."""
    uid = peer_uid(connection)
    return uid is None or uid in (os.geteuid(), 0)


def peer_uid(connection: socket.socket) -> int | None:
    """As which user the process at the other end runs (for a server: when it began to listen)."""
    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("iII"))
        return int(struct.unpack("iII", credentials)[1])
    if sys.platform == "darwin":
        xucred = connection.getsockopt(_DARWIN_SOL_LOCAL, _DARWIN_LOCAL_PEERCRED, _DARWIN_XUCRED_BYTES)
        return int(struct.unpack_from("=II", xucred)[1])
    return None
