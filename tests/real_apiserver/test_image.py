"""What the image holds, made without Docker: it runs under both names, and its user can change nothing in it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program, private_home
from tests.real_apiserver.containers import Container, can_contain
from tests.real_apiserver.deployments import REPOSITORY

Run = Callable[..., Program]

needs_mounts = pytest.mark.skipif(not can_contain(), reason="only root can make mounts of their own for a process")


@pytest.fixture
def run(image_root: Path) -> Iterator[Run]:
    """Runs a command in the image to its end, as its user, with nothing mounted but /tmp."""
    with private_home() as home:
        home.chmod(0o755)

        def run(*command: str) -> Program:
            volumes = [{"name": "tmp", "emptyDir": {}}]
            container = {
                "command": list(command),
                "securityContext": {"readOnlyRootFilesystem": True},
                "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
            }
            spec = {"containers": [container], "volumes": volumes}
            folder = home / str(len(os.listdir(home)))
            folder.mkdir()
            made = Container(
                spec,
                root=image_root,
                folder=folder,
                config_maps={},
                server=("", 0),
                token="",
                ca_pem="",
                namespace="",
            )
            with made.start() as program:
                program.ended()
                return program

        yield run


def environment(root: Path) -> Path:
    return root / "opt" / "mooring"


def test_the_program_has_both_names_and_both_folders(image_root: Path):
    links = {
        str(path.relative_to(image_root)): str(path.readlink())
        for folder in ("usr/bin", "usr/local/bin")
        for path in (image_root / folder).iterdir()
    }
    program = "/opt/mooring/bin/mooring"
    names = ("usr/bin/kube-scheduler", "usr/local/bin/kube-scheduler", "usr/local/bin/mooring")
    assert links == dict.fromkeys(names, program)
    assert (image_root / "bin").resolve() == image_root / "usr" / "bin"


def test_nothing_in_it_can_be_written(image_root: Path):
    writable = [
        path
        for path in environment(image_root).rglob("*")
        if not path.is_symlink() and path.stat().st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH)
    ]
    assert writable == []


def test_it_holds_the_locked_packages_and_mooring(image_root: Path):
    (packages,) = environment(image_root).glob("lib/python3*/site-packages")
    installed = {path.name.partition("-")[0].lower().replace("_", "-") for path in packages.glob("*.dist-info")}
    lock = (REPOSITORY / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    locked = {line.partition("==")[0].lower() for line in lock.splitlines() if "==" in line and line[0] not in " #"}
    assert installed - {"mooring"} <= locked
    assert {"aiohttp", "numpy", "msgspec", "mooring"} <= installed
    assert not (packages / "pip").exists()
    (sbom,) = packages.glob("mooring-*.dist-info/sboms/mooring.cdx.json")
    assert sbom.read_bytes() == (REPOSITORY / "requirements" / "mooring.cdx.json").read_bytes()


def test_a_folder_that_is_taken_is_refused(image_root: Path):
    done = subprocess.run([REPOSITORY / "scripts" / "build-root", image_root], capture_output=True, text=True)
    assert (done.returncode, done.stderr.strip()) == (
        2,
        f"build-root: {image_root}/opt/mooring is there already; give an empty folder.",
    )


@needs_mounts
def test_it_runs_under_both_names(run: Run):
    assert run("mooring", "--version").out[0].startswith("mooring ")
    done = run("kube-scheduler", "--help")
    assert done.process.returncode == 0, done.written()
    assert "--authentication-kubeconfig" in "\n".join(done.out)


@needs_mounts
def test_its_user_owns_nothing_and_can_write_only_temporary_files(run: Run):
    code = (
        "import os, sys, tempfile; print(os.getuid(), os.getgroups()); tempfile.mkdtemp(); open('/opt/mooring/x', 'w')"
    )
    tried = run("/opt/mooring/bin/python", "-c", code)
    assert tried.out == ["65532 []"]
    assert "Read-only file system" in tried.err[-1] or "Permission denied" in tried.err[-1]


@needs_mounts
def test_it_loads_its_libraries_from_its_own_environment(run: Run):
    code = "import aiohttp, cryptography, numpy, uvloop, mooring; print(mooring.__file__)"
    found = run("/opt/mooring/bin/python", "-W", "error", "-c", code)
    assert found.out[0].startswith("/opt/mooring/"), found.written()


@needs_mounts
def test_a_scheduler_that_does_not_run_is_not_healthy(run: Run):
    done = run("mooring", "health", "--port=1")
    assert done.process.returncode == 1, done.written()
