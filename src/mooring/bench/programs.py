"""Finds the programs that benchmarks run: in the cache that the scripts of a checkout fill, or on the PATH.

The cache is `~/.cache/mooring`, or what `MOORING_CACHE` names. A program that is missing is reported with the command
that gets it; all that are missing are reported at once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from mooring.apiserver.discovery import KUBERNETES_VERSION
from mooring.base.errors import OperatorMistake, Problem

ETCD, KUBE_APISERVER, KUBE_SCHEDULER, BIND_RATE = "etcd", "kube-apiserver", "kube-scheduler", "bind-rate"
_MADE_BY = {
    ETCD: "`scripts/install-debian etcd` gets it",
    KUBE_APISERVER: "`scripts/build-real kube-apiserver` builds it (needs Go)",
    KUBE_SCHEDULER: "`scripts/build-real kube-scheduler` builds it (needs Go)",
    BIND_RATE: "`scripts/build-bind-rate` builds it (needs Go)",
}


def cache_folder(environ: Mapping[str, str] = os.environ) -> Path:
    caches = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(environ.get("MOORING_CACHE") or caches / "mooring")


def cached_path(name: str, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the script that gets the program puts it."""
    cache = cache_folder(environ)
    if name == ETCD:
        return cache / "debian" / name / "usr" / "bin" / name
    return cache / "bin" / name if name == BIND_RATE else cache / "bin" / KUBERNETES_VERSION / name


def find_program(name: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """The program's path. Kubernetes' programs come from the cache alone: their version is part of the figures."""
    if name == ETCD and (found := shutil.which(name, path=environ.get("PATH"))) is not None:
        return Path(found)
    path = cached_path(name, environ)
    return path if os.access(path, os.X_OK) else None


def require_programs(names: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, Path]:
    """The paths of all of them, or `OperatorMistake` with those that are missing."""
    found = {name: find_program(name, environ) for name in names}
    problems = [
        Problem(name, f"is not at {cached_path(name, environ)}; {_MADE_BY[name]}, in a checkout of Mooring")
        for name, path in found.items()
        if path is None
    ]
    if problems:
        raise OperatorMistake(
            f"the benchmark runs real programs, and {len(problems)} of them {_are(len(problems))} missing.", problems
        )
    return {name: path for name, path in found.items() if path is not None}


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
