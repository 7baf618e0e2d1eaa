"""`mooring manifests` called in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from mooring.base import log
from mooring.cli.main import exit_code


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


def manifests(*arguments: str) -> Result:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code(["manifests", *arguments])
    log.configure(verbosity=0, format="text")
    return Result(code, out.getvalue(), err.getvalue())


def printed(*arguments: str) -> str:
    result = manifests(*arguments)
    assert result.code == 0, result.err
    return result.out


def refused(*arguments: str) -> str:
    """The error of a wrong command line."""
    result = manifests(*arguments)
    assert result.code == 2, result
    return result.err
