"""Why a file that was named may not be there, in words that help: what is there instead.

In a pod, a file comes from a volume: a ConfigMap without the key makes an empty place, one that is mounted as a single
file (subPath) makes a folder of that name, and a volume that was not mounted makes nothing at all.
"""

from __future__ import annotations

from pathlib import Path

from mooring.base.errors import did_you_mean

SHOWN = 10


def why_absent(path: str) -> str:
    """A sentence or two, beginning with a space; nothing where nothing is known."""
    where = Path(path)
    if where.is_dir():
        return " A ConfigMap that is mounted with subPath and lacks the key looks like this; does it have the key?"
    folder = where.parent
    if where.exists():
        return ""
    if not folder.is_dir():
        return f" There is no folder {folder} either; is the volume mounted there?"
    try:
        # A mounted ConfigMap keeps its versions beside the files, under names that begin with two dots.
        found = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(".."))
    except OSError:
        return ""
    if not found:
        return f" The folder {folder} is empty; if it is a mounted ConfigMap, it lacks the key {where.name}."
    more = f", and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    hint = did_you_mean(where.name, found)
    return f" The folder {folder} holds {', '.join(found[:SHOWN])}{more}.{hint}"
