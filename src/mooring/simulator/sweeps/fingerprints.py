"""Whether a value is the same as in an earlier call: a digest of its content, not of how it was pickled.

Functions and classes are compared by their source, files by their bytes. What has no content to compare, such as an
open connection, has no fingerprint, and is identified by its label alone.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from pathlib import Path, PurePath
from typing import Any

import msgspec
import numpy as np

from mooring.objects.meta import KubeObject
from mooring.simulator.configurations import ProfileDocument
from mooring.simulator.scenario import Cluster, Workload

LENGTH = 16


def fingerprint(value: Any) -> str | None:
    """None: the value cannot be compared."""
    digest = hashlib.sha256()
    try:
        digest.update(_encoder.encode(_whole(value)))
    except (_NotComparable, TypeError, ValueError, RecursionError):
        return None
    return digest.hexdigest()[:LENGTH]


class _NotComparable(Exception):
    """There is no content."""


def _whole(value: Any) -> Any:
    """Containers whose content depends on more than their items, or whose order is another in each process."""
    if isinstance(value, ProfileDocument):
        return [dict(value), value.classes]
    if isinstance(value, Cluster):
        objects = [_without_uid(each) for each in (*value.nodes, *value.pods, *value.objects)]
        return [objects, list(value.documents.items())]
    if isinstance(value, Workload):
        arrivals = [[each.at, each.duration, _without_uid(each.pod)] for each in value]
        return [arrivals, list(value.documents.items())]
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(each) for each in value]
    return sorted(map(repr, value)) if isinstance(value, set | frozenset) else value


def _without_uid(value: KubeObject) -> list[Any]:
    """An object that is made again has another uid, and is scheduled alike."""
    fields = [getattr(value, name) for name in value.__struct_fields__ if name != "metadata"]
    return [type(value).__name__, msgspec.structs.replace(value.metadata, uid=""), *fields]


def _content(value: Any) -> Any:
    """What stands for a value that msgspec cannot encode."""
    if isinstance(value, PurePath):
        return _file(Path(value))
    if isinstance(value, types.FunctionType):
        cells = [_whole(cell.cell_contents) for cell in value.__closure__ or ()]
        return [value.__qualname__, _source(value), _whole(value.__defaults__), _whole(value.__kwdefaults__), cells]
    if isinstance(value, functools.partial):
        return [value.func, _whole(value.args), _whole(value.keywords)]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__name__]
    if isinstance(value, type):
        return [value.__module__, value.__qualname__, _source(value)]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, types.BuiltinFunctionType | types.ModuleType):
        return [value.__name__]
    if hasattr(value, "__dict__"):
        return [type(value), _whole(vars(value))]
    raise _NotComparable


_encoder = msgspec.msgpack.Encoder(enc_hook=_content)


def _source(value: Any) -> str:
    try:
        return inspect.getsource(value)
    except (OSError, TypeError) as error:
        raise _NotComparable from error


def _file(path: Path) -> Any:
    try:
        return [path.name, path.read_bytes()]
    except OSError:
        return [str(path)]
