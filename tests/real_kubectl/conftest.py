"""Real Kubernetes programs for tests, found in the cache folder that `scripts/build-real` fills.

Every test under this folder carries the marker `real`. A program that was not built skips the tests that need it,
with the command that builds it; with REQUIRE_REAL=1 its absence is a failure, so that CI cannot pass by skipping.
"""

import contextlib
import json
import os
import re
import subprocess
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.programs import Program, private_home

HERE = Path(__file__).parent
GO_MODULE = HERE.parents[1] / "scripts" / "real" / "go.mod"
# Longer than kubectl itself waits anywhere, for a machine that is busy with other things.
TIMEOUT_SECONDS = 120


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is collected here; the hook is handed the tests of every folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)


def kubernetes_version() -> str:
    """The version of Kubernetes whose programs are used, as `scripts/real/go.mod` requires it: "v1.36.4"."""
    found = re.search(r"k8s\.io/kubernetes (v[0-9.]+)", GO_MODULE.read_text(encoding="utf-8"))
    assert found is not None, f"{GO_MODULE} does not require k8s.io/kubernetes"
    return found[1]


def real_program(name: str) -> Path:
    """The path of a real program. Without it the calling test is skipped, or fails where real parts are required."""
    environment = os.environ
    caches = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = Path(environment.get("MOORING_CACHE") or caches / "mooring") / "bin" / kubernetes_version() / name
    if os.access(path, os.X_OK):
        return path
    reason = f"the real {name} is not at {path}; `scripts/build-real {name}` builds it (needs Go)"
    if environment.get("REQUIRE_REAL"):
        pytest.fail(f"REQUIRE_REAL is set, and {reason}", pytrace=False)
    pytest.skip(reason)


class Kubectl:
    """The real kubectl, pointed at one cluster and at nothing of the person who runs the tests."""

    def __init__(self, kubeconfig: Path) -> None:
        self.program = real_program("kubectl")
        self.kubeconfig = kubeconfig
        self.namespace = "default"

    def command(self, *args: str) -> list[str]:
        """The command line, for a test that must start it itself, as with `get -w`."""
        # Discovery is cached by host and port, which another test's server may have had before.
        cache = f"--cache-dir={self.kubeconfig}.cache"
        return [str(self.program), f"--kubeconfig={self.kubeconfig}", cache, f"--namespace={self.namespace}", *args]

    def environment(self) -> dict[str, str]:
        """The environment to run it in: no ~/.kube, no kuberc, no editor or proxy of the person who runs the tests."""
        return {"PATH": os.environ.get("PATH", ""), "HOME": str(self.kubeconfig.parent), "KUBERC": "off"}

    def run(self, *args: str, input: str | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one command to its end. A failing one fails the test with its output, unless check is False."""
        done = subprocess.run(
            self.command(*args),
            input=input,
            stdin=subprocess.DEVNULL if input is None else None,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        if check and done.returncode != 0:
            pytest.fail(f"kubectl {' '.join(args)} ended with {done.returncode}:\n{done.stderr}{done.stdout}")
        return done

    def out(self, *args: str, input: str | None = None) -> str:
        """What a command that succeeds prints."""
        return self.run(*args, input=input).stdout

    def refusal(self, *args: str, input: str | None = None) -> str:
        """The error output of a command that fails."""
        done = self.run(*args, input=input, check=False)
        assert done.returncode != 0, f"kubectl {' '.join(args)} was not refused:\n{done.stdout}"
        return done.stderr

    def rows(self, *args: str) -> list[dict[str, str]]:
        """The table that a command prints: a row is a mapping from the column's head to the cell."""
        head, *lines = self.out(*args).splitlines()
        starts = [match.start() for match in re.finditer(r"(?<=  )\S|^\S", head)]
        spans = list(zip(starts, [*starts[1:], None], strict=True))
        names = [head[start:end].strip() for start, end in spans]
        return [
            dict(zip(names, (line[start:end].strip() for start, end in spans), strict=True)) for line in lines if line
        ]

    def in_namespace(self, namespace: str) -> "Kubectl":
        """The same, with another default namespace."""
        other = Kubectl(self.kubeconfig)
        other.namespace = namespace
        return other

    def events(self, about: str, *reasons: str) -> list[dict[str, Any]]:
        """The events about an object, once there is one for each of these reasons: they are written after the fact."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            found: list[dict[str, Any]] = self.json("get", "events", f"--field-selector=involvedObject.name={about}")[
                "items"
            ]
            missing = set(reasons) - {event["reason"] for event in found}
            if not missing:
                return found
            assert time.monotonic() < deadline, f"{about} has no event {', '.join(missing)}"

    def shows(self, text: str, *args: str) -> str:
        """What a command prints, once it has this text: some of what is shown is written after the fact."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while text not in (printed := self.out(*args)):
            assert time.monotonic() < deadline, f"kubectl {' '.join(args)} does not show {text!r}:\n{printed}"
        return printed

    def json(self, *args: str) -> Any:
        """What a command prints with `-o json`, decoded."""
        return json.loads(self.run(*args, "--output=json").stdout)


@pytest.fixture(scope="session")
def kubectl() -> type[Kubectl]:
    """`Kubectl`, once it is known that there is one: `kubectl(kubeconfig).run("get", "pods")`."""
    real_program("kubectl")
    return Kubectl


class Up(Kubectl):
    """A running `mooring up`, and the kubectl that is pointed at it."""

    def __init__(self, kubeconfig: Path, program: Program) -> None:
        super().__init__(kubeconfig)
        self.mooring = program

    def explain(self, pod: str) -> str:
        """The output of `mooring explain`."""
        with Program(
            "explain", pod, "--recorded", f"--kubeconfig={self.kubeconfig}", home=self.kubeconfig.parent
        ) as program:
            assert program.ended() == 0, program.written()
            return "\n".join(program.out)


@contextlib.contextmanager
def mooring_up(*options: str, files: dict[str, str] | None = None) -> Iterator[Up]:
    """Start `mooring up` with these options, in a folder with these files; end it as a user does."""
    real_program("kubectl")
    with private_home() as home:
        for name, text in (files or {}).items():
            (home / name).write_text(text, encoding="utf-8")
        with Program("up", "--write-kubeconfig=kubeconfig", *options, home=home) as program:
            program.ready()
            yield Up(home / "kubeconfig", program)
            assert program.end() == 0, program.written()
            assert "Traceback" not in program.written()
            assert not (home / "kubeconfig").exists()


@pytest.fixture(scope="session")
def up() -> Iterator[Up]:
    """One `mooring up --nodes 3` for all tests that leave the nodes as they found them."""
    with mooring_up("--nodes=3", "-v=3") as running:
        yield running


@pytest.fixture
def shop(up: Up) -> Iterator[Kubectl]:
    """A namespace of the test's own on that cluster."""
    name = f"shop-{uuid.uuid4().hex[:8]}"
    up.run("create", "namespace", name)
    yield up.in_namespace(name)
    up.run("delete", "namespace", name, "--wait=false")
