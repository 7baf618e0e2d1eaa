"""Where the embedded cluster's kubeconfig is written: never over a file that is somebody else's."""

from __future__ import annotations

import contextlib
from pathlib import Path

from mooring.base.errors import OperatorMistake

DEFAULT = "mooring.kubeconfig"
MARK = "current-context: mooring"


def check_writable(path: Path) -> None:
    """Refuse before anything is started if writing there would lose something or cannot work."""
    if path.is_dir():
        raise OperatorMistake(f"{path} is a folder; give --write-kubeconfig the name of a file.")
    if path.exists() and path.stat().st_size and MARK not in path.read_text(encoding="utf-8", errors="replace"):
        raise OperatorMistake(
            f"{path} is a kubeconfig that Mooring did not write; give --write-kubeconfig another name, "
            "so that nothing in it is lost."
        )
    if not path.parent.is_dir():
        raise OperatorMistake(f"{path.parent} is no folder; make it, or give --write-kubeconfig another name.")


def remove_ours(path: Path, server: str) -> None:
    """Remove the file unless it points elsewhere by now: a later cluster may have written its own there."""
    with contextlib.suppress(OSError):
        if f"server: {server}\n" in path.read_text(encoding="utf-8", errors="replace"):
            path.unlink(missing_ok=True)
