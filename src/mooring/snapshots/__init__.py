"""Snapshots of clusters: what scheduling reads of one, in a file.

`kinds` lists what is saved and `fields` which fields, `pruning` leaves out the rest, `taking` lists a cluster,
`file_format` writes and reads, `anonymizing` replaces names.

    snapshot = read_snapshot("cluster.snapshot")
    snapshot.header.taken_at
    for node in snapshot.objects(Node): ...
"""

from mooring.snapshots.anonymizing import anonymize
from mooring.snapshots.file_format import (
    Header,
    LeftOut,
    Snapshot,
    Spool,
    SpooledSnapshot,
    is_snapshot,
    read_snapshot,
    write_snapshot,
)
from mooring.snapshots.taking import take_snapshot

__all__ = [
    "Header",
    "LeftOut",
    "Snapshot",
    "Spool",
    "SpooledSnapshot",
    "anonymize",
    "is_snapshot",
    "read_snapshot",
    "take_snapshot",
    "write_snapshot",
]
