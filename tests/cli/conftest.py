"""`mooring` called in this process, with nothing of the person who runs the tests."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.cli.programs import private_home, serving_nothing

from mooring.base import log
from mooring.cli.main import exit_code

NOWHERE = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: lost, context: {cluster: c, user: u}}]
current-context: lost
"""


@pytest.fixture(scope="session", autouse=True)
def hangups_end_programs() -> Iterator[None]:
    """Programs inherit that SIGHUP is ignored, as it is where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
def home() -> Iterator[Path]:
    """A home folder of its own, for programs that a test starts."""
    with private_home() as folder:
        yield folder


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Mooring = Callable[..., Result]


@pytest.fixture(autouse=True)
def nothing_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    with private_home() as home:
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(home))
        for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.chdir(tmp_path)
        yield
    log.configure(verbosity=0, format="text")


@pytest.fixture
def mooring(capfd: pytest.CaptureFixture[str]) -> Mooring:
    """`mooring("config", "check", "f.yaml")`: the exit code and what was written."""

    def call(*arguments: str) -> Result:
        capfd.readouterr()
        code = exit_code(serving_nothing(arguments))
        written = capfd.readouterr()
        return Result(code, written.out, written.err)

    return call


def write(path: str, text: str) -> str:
    """A file in the test's folder; gives its name as a user would type it."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, encoding="utf-8")
    return path
