"""`mooring manifests` called in this process."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from mooring.base import log
from mooring.cli.main import exit_code


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


def manifests(*arguments: str) -> Answer:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code(["manifests", *arguments])
    log.configure(verbosity=0, format="text")
    return Answer(code, out.getvalue(), err.getvalue())


def printed(*arguments: str) -> str:
    answer = manifests(*arguments)
    assert answer.code == 0, answer.err
    return answer.out


def refused(*arguments: str) -> str:
    """What a command line that is a mistake is told."""
    answer = manifests(*arguments)
    assert answer.code == 2, answer
    return answer.err
