"""scripts/update-base pins what a registry has now, by a `docker` that the test brings."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DIGEST = "sha256:" + "ab" * 32
INDEX = "application/vnd.oci.image.index.v1+json"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for file in ("deploy/Dockerfile", "scripts/update-base"):
        (tmp_path / file).parent.mkdir()
        shutil.copy(REPOSITORY / file, tmp_path / file)
    return tmp_path


def update(copy: Path, *arguments: str, digest: str = DIGEST, kind: str = INDEX) -> subprocess.CompletedProcess[str]:
    """Run the script with a registry that has one digest for every tag; its queries go to copy/queries."""
    docker = copy / "bin" / "docker"
    docker.parent.mkdir(exist_ok=True)
    docker.write_text(
        f'#!/bin/sh\necho "$@" >>{copy}/queries\n'
        f'case "$*" in *Digest*) echo "{digest}" ;; *MediaType*) echo "{kind}" ;; esac\n'
    )
    docker.chmod(0o755)
    return subprocess.run(
        [copy / "scripts/update-base", *arguments],
        env={"PATH": f"{docker.parent}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def base(copy: Path) -> str:
    lines = (copy / "deploy/Dockerfile").read_text(encoding="utf-8").splitlines()
    (pinned,) = [line.removeprefix("ARG PYTHON=") for line in lines if line.startswith("ARG PYTHON=")]
    return pinned


def test_the_pinned_tag_gets_the_digest_of_today_and_nothing_else_changes(copy):
    before = (copy / "deploy/Dockerfile").read_text(encoding="utf-8")
    old = base(copy)
    done = update(copy)
    assert done.returncode == 0, done.stderr
    assert base(copy) == f"{old.partition('@')[0]}@{DIGEST}" == done.stdout.strip()
    assert (copy / "deploy/Dockerfile").read_text(encoding="utf-8") == before.replace(old, base(copy))


def test_another_tag_can_be_named(copy):
    assert update(copy, "python:3.14-slim").returncode == 0
    assert base(copy) == f"python:3.14-slim@{DIGEST}"
    assert "python:3.14-slim" in (copy / "queries").read_text()


REFUSED = {
    "an image of one architecture": ({"kind": "application/vnd.oci.image.manifest.v1+json"}, "no index"),
    "no digest": ({"digest": "oops"}, "digest of"),
}


@pytest.mark.parametrize(("registry", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused_changes_nothing(copy, registry, words):
    old = base(copy)
    done = update(copy, **registry)
    assert (done.returncode, words in done.stderr) == (2, True), done.stderr
    assert base(copy) == old


def test_a_digest_is_no_tag(copy):
    assert update(copy, f"python@{DIGEST}").returncode == 2
