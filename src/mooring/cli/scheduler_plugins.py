"""Plugin files that a scheduler here was started with: which of them this command may run, too.

The scheduler runs as the same user, so what it names could be named on the command line as well. A file is run only if
no other user can have written it: it, its helpers and the folders above belong to this user or to root.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from mooring.base.errors import OperatorMistake


class SchedulerPlugins(NamedTuple):
    """What the plugins of some profiles need of the command line."""

    paths: tuple[str, ...] = ()
    """To be run."""
    refused: tuple[str, ...] = ()
    """Sentences: which plugin is not run, why, and which flag runs it."""


def scheduler_plugins(paths: Mapping[str, str], wanted: Iterable[str]) -> SchedulerPlugins:
    """`paths`: by plugin, as the scheduler names them; `wanted`: the plugins that are not known here."""
    trusted: dict[str, None] = {}
    refused = []
    for plugin in wanted:
        if (path := paths.get(plugin)) is None:
            continue
        if why := _distrust(path):
            refused.append(f"plugin {plugin} of the scheduler is not run: {why}. Give --plugins {path} to run it")
        else:
            trusted[path] = None
    return SchedulerPlugins(tuple(trusted), tuple(refused))


def _distrust(path: str) -> str:
    """Why it is not run unless the command line names it; "" if it is."""
    from mooring.framework.plugin_files import is_module_path, with_helpers

    if is_module_path(path) or not os.path.isabs(path):
        return "it is a module, which may be another one here"
    try:
        files = with_helpers(path)
        folders = {file.parent for file in files}
        above = {parent for folder in folders for parent in folder.resolve().parents} - folders
        for each in (*files, *sorted(folders), *sorted(above)):
            if why := _distrusted(each, may_be_shared=each in above):
                return why
    except (OSError, OperatorMistake) as error:
        return str(error).rstrip(".")
    return ""


def _distrusted(path: Path, *, may_be_shared: bool) -> str:
    """`may_be_shared`: a folder such as /tmp, in which others can add files and not replace those of this user."""
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), 0):
        return f"{path} belongs to another user (uid {found.st_uid})"
    others = stat.S_IWOTH
    if not found.st_gid == found.st_uid == os.geteuid():  # a group of this user alone
        others |= stat.S_IWGRP
    if found.st_mode & others and not (may_be_shared and found.st_mode & stat.S_ISVTX):
        return f"other users can write {path} (mode {stat.S_IMODE(found.st_mode):04o})"
    return ""
