"""Files that Mooring writes: whole or not at all, and never through something another user planted at their name.

A file is written under a random name in the target folder and renamed over the target: a link, a pipe or another
user's file at the target's name is neither opened nor followed. Every failure is an `OSError` whose `strerror` explains
what is wrong.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

PRIVATE = 0o600
FOLDER = 0o755
STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/null", "/dev/tty")
"""Names that are no files to replace. So is /dev/fd/N."""
_KINDS = {
    stat.S_IFLNK: "a symbolic link; name the file that it points to",
    stat.S_IFIFO: "a named pipe and no regular file",
    stat.S_IFSOCK: "a socket and no regular file",
    stat.S_IFCHR: "a device and no regular file",
    stat.S_IFBLK: "a device and no regular file",
    stat.S_IFDIR: "a folder",
}
_CLOEXEC_NOFOLLOW = os.O_CLOEXEC | os.O_NOFOLLOW
_OTHERS_MAY_WRITE = stat.S_IWGRP | stat.S_IWOTH
_MOST_TRIES = 10
_TRY_AGAIN_SECONDS = 0.02


def write_private(path: Path | str, content: str | bytes) -> None:
    """Replace or create a file of mode 0600, whatever mode the file had before."""
    _replace(Path(path), content, is_private=True)


@contextlib.contextmanager
def writing_private(path: Path | str) -> Iterator[IO[bytes]]:
    """Like `write_private`, for content that is written piece by piece: it replaces the file when the block ends."""
    with _writing(Path(path), is_private=True) as file:
        yield file


@contextlib.contextmanager
def writing_whole(path: Path | str) -> Iterator[IO[bytes]]:
    """Like `write_whole`, for content that is written piece by piece: it replaces the file when the block ends."""
    with _writing(Path(path), is_private=False) as file:
        yield file


def hold_private(path: Path | str, content: str | bytes) -> IO[bytes] | None:
    """Like `write_private`, and locked for as long as this process keeps what is returned (None: no file, a stream).

    `BlockingIOError` if another process holds the file. A file whose process has ended, however it ended, is replaced.
    """
    target = Path(path)
    if is_stream(target):
        _replace(target, content, is_private=True)
        return None
    with _in_folder(target) as (folder, name):
        # The lock on what is there, or on an empty file in its place, keeps others out until ours has replaced it.
        before, is_new = _locked(folder, name)
        try:
            return _replace(target, content, is_private=True, is_held=True)
        except BaseException:
            if is_new:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
            raise
        finally:
            os.close(before)


def is_held(path: Path | str) -> bool:
    """Whether a process holds the file, as `hold_private` does."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _CLOEXEC_NOFOLLOW)
    except OSError:
        return False
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def write_whole(path: Path | str, content: str | bytes) -> None:
    """Replace or create a file that others may read."""
    _replace(Path(path), content, is_private=False)


def create_new(path: Path | str, content: str | bytes) -> None:
    """Create a file that others may read; `FileExistsError` if anything has its name, also a link to nowhere."""
    with _in_folder(Path(path)) as (folder, name):
        descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC_NOFOLLOW, 0o666, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_bytes(content))
                file.flush()
                os.fsync(descriptor)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
            raise


def open_to_append(path: Path | str) -> IO[bytes]:
    """An unbuffered regular file to add to. What another user planted in a shared folder is refused."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
    if is_stream(Path(path)):
        return os.fdopen(os.open(path, flags), "ab", buffering=0)
    with _in_folder(Path(path)) as (folder, name):
        _refuse_unless_regular(folder, name)
        descriptor = os.open(name, flags | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=folder)
        try:
            _refuse_planted(os.fstat(descriptor), os.fstat(folder))
        except OSError:
            os.close(descriptor)
            raise
    return os.fdopen(descriptor, "ab", buffering=0)


def append(file: IO[bytes], data: bytes) -> None:
    """Add to the end of what `open_to_append` returned: all of it, or nothing where the disk is full."""
    before = os.fstat(file.fileno()).st_size
    view = memoryview(data)
    try:
        while view:
            view = view[file.write(view) :]
    except OSError:
        with contextlib.suppress(OSError):  # a stream has no length
            os.ftruncate(file.fileno(), before)
        raise


def append_line(path: Path | str, line: bytes) -> None:
    """One more line of a file, which is made if it is missing, and is not left behind empty."""
    is_new = not os.path.lexists(path)
    with open_to_append(path) as file:
        try:
            append(file, line + b"\n")
        except OSError:
            if is_new:
                with contextlib.suppress(OSError):
                    os.unlink(path)
            raise


def read_regular(path: Path | str) -> bytes:
    """A regular file's bytes, through links. A pipe, on which reading would wait for ever, is refused."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    return _content(descriptor)


def read_if_regular(path: Path | str) -> bytes | None:
    """A regular file's bytes, not through a link; None if there is nothing of that name."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _CLOEXEC_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            _refuse_kind(stat.S_IFLNK)
        raise
    return _content(descriptor)


def make_private(path: Path | str) -> bool:
    """Set the mode of our own regular file to 0600; whether that was needed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _CLOEXEC_NOFOLLOW)
    try:
        found = os.fstat(descriptor)
        is_wide = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and bool(found.st_mode & 0o077)
        if is_wide:
            os.fchmod(descriptor, PRIVATE)
        return is_wide
    finally:
        os.close(descriptor)


def make_folder(path: Path | str) -> list[Path]:
    """The folder and those above it, as far as they are missing; others cannot write to what is made here.

    Returns what was made, the outermost first.
    """
    folder, made = Path(path), []
    for each in (*reversed(folder.parents), folder):
        with contextlib.suppress(FileExistsError):
            if not each.is_dir():
                each.mkdir(FOLDER)
                made.append(each)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "there is a file of that name that is no folder")
    return made


@contextlib.contextmanager
def in_made_folder(path: Path | str) -> Iterator[None]:
    """Make the folder; if the block fails, what was made and is empty is removed again."""
    made = make_folder(path)
    try:
        yield
    except BaseException:
        for each in reversed(made):
            with contextlib.suppress(OSError):
                each.rmdir()
        raise


def is_stream(path: Path) -> bool:
    """Whether it is no file to replace, but written to as it is."""
    return str(path) in STREAMS or path.parent == Path("/dev/fd")


def others_may_write(folder: os.stat_result) -> bool:
    """Whether users besides the owner can create files in a folder."""
    return bool(folder.st_mode & _OTHERS_MAY_WRITE)


@contextlib.contextmanager
def _writing(target: Path, *, is_private: bool) -> Iterator[IO[bytes]]:
    if is_stream(target):
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "wb") as stream:
            yield stream
        return
    with _in_folder(target) as (folder, name), _replacing(folder, name, is_private=is_private) as file:
        yield file


def _replace(path: Path, content: str | bytes, *, is_private: bool, is_held: bool = False) -> IO[bytes] | None:
    """Returns the open file, locked, if it is to be held."""
    data = _bytes(content)
    if is_stream(path):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), "wb") as stream:
            stream.write(data)
        return None
    with contextlib.ExitStack() as on_failure:
        held = None
        with _in_folder(path) as (folder, name), _replacing(folder, name, is_private=is_private) as file:
            if is_held:
                _lock(file.fileno())
                # For as long as this descriptor is open, the file stays locked.
                held = on_failure.enter_context(os.fdopen(os.dup(file.fileno()), "wb"))
            file.write(data)
            file.flush()
        on_failure.pop_all()
    return held


@contextlib.contextmanager
def _replacing(folder: int, name: str, *, is_private: bool) -> Iterator[IO[bytes]]:
    """A draft that gets the name when the block ends, and is removed if it fails."""
    _refuse_unless_regular(folder, name)
    draft, descriptor = _draft(folder, PRIVATE if is_private else 0o666)
    with os.fdopen(descriptor, "wb") as file:
        try:
            if is_private:
                os.fchmod(descriptor, PRIVATE)
            yield file
            file.flush()
            os.fsync(descriptor)
            os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            ours, there = os.fstat(descriptor), os.stat(name, dir_fd=folder, follow_symlinks=False)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(draft, dir_fd=folder)
            raise
    if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
        raise PermissionError(
            errno.EPERM, "another user replaced it while it was written; choose a folder that only you can write to"
        )
    with contextlib.suppress(OSError):  # not every file system can
        os.fsync(folder)


def _locked(folder: int, name: str) -> tuple[int, bool]:
    """The file of that name, open and locked; an empty one is made where there is none, and whether it was."""
    for _ in range(_MOST_TRIES):
        _refuse_unless_regular(folder, name)
        descriptor, is_new = _opened_or_made(folder, name)
        found = os.fstat(descriptor)
        if _lock(descriptor):
            with contextlib.suppress(FileNotFoundError):
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if (found.st_dev, found.st_ino) == (there.st_dev, there.st_ino):
                    return descriptor, is_new
        os.close(descriptor)
        # It was replaced in between, or another process only looked whether it is held.
        time.sleep(_TRY_AGAIN_SECONDS)
    raise BlockingIOError(errno.EWOULDBLOCK, "another process holds it")


def _opened_or_made(folder: int, name: str) -> tuple[int, bool]:
    flags = os.O_RDONLY | os.O_NONBLOCK | _CLOEXEC_NOFOLLOW
    try:
        return os.open(name, flags | os.O_CREAT | os.O_EXCL, PRIVATE, dir_fd=folder), True
    except FileExistsError:
        return os.open(name, flags | os.O_CREAT, PRIVATE, dir_fd=folder), False


def _lock(descriptor: int) -> bool:
    """Whether this process has the lock now; a file system without locks locks nothing."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _draft(folder: int, mode: int) -> tuple[str, int]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC_NOFOLLOW
    while True:
        name = f".mooring-{secrets.token_hex(16)}"
        with contextlib.suppress(FileExistsError):
            return name, os.open(name, flags, mode, dir_fd=folder)


@contextlib.contextmanager
def _in_folder(path: Path) -> Iterator[tuple[int, str]]:
    """An open folder and a name in it: the folder cannot be swapped between two steps."""
    if path.name in ("", ".."):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder, path.name
    finally:
        os.close(folder)


def _content(descriptor: int) -> bytes:
    try:
        _refuse_kind(os.fstat(descriptor).st_mode)
    except OSError:
        os.close(descriptor)
        raise
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _refuse_unless_regular(folder: int, name: str) -> None:
    """Not a protection: it only reports early, and clearly, what will not be replaced."""
    with contextlib.suppress(FileNotFoundError):
        _refuse_kind(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _refuse_kind(mode: int) -> None:
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'no regular file')}")


def _refuse_planted(file: os.stat_result, folder: os.stat_result) -> None:
    """The kernel's fs.protected_regular and fs.protected_hardlinks, which are not switched on everywhere."""
    _refuse_kind(file.st_mode)
    if file.st_nlink != 1:
        raise PermissionError(errno.EPERM, "it is a hard link to another file; name a new file")
    if file.st_uid not in (os.geteuid(), folder.st_uid) and others_may_write(folder):
        raise PermissionError(errno.EPERM, "it belongs to another user, in a shared folder; name a new file")


def _bytes(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content
