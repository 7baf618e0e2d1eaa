"""What krew installs: unpacked and linked as krew does it, `kubectl mooring` runs Mooring."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
URI = "https://example.com/kubectl-mooring.tar.gz"


def build(out: Path, uri: str = URI) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "scripts/build-krew"), "--uri", uri, "--out", str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    out = tmp_path / "built"
    result = build(out)
    assert result.returncode == 0, result.stderr
    return out


def the_manifest(built: Path) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((built / "mooring.yaml").read_text(encoding="utf-8"))
    return document


def installed(built: Path, folder: Path) -> Path:
    """By krew's steps: check the digest, unpack, move the listed files into the store, link the program."""
    [platform] = the_manifest(built)["spec"]["platforms"]
    packed = (built / "kubectl-mooring.tar.gz").read_bytes()
    assert hashlib.sha256(packed).hexdigest() == platform["sha256"]
    unpacked, store, bin_folder = folder / "download", folder / "store", folder / "bin"
    with tarfile.open(built / "kubectl-mooring.tar.gz") as files:
        files.extractall(unpacked, filter="data")
    store.mkdir()
    bin_folder.mkdir()
    for each in platform["files"]:
        (unpacked / each["from"]).rename(store / each["to"] / each["from"])
    link = bin_folder / "kubectl-mooring"  # krew's name for the plugin `mooring`
    link.symlink_to(store / platform["bin"])
    return link


def run(link: Path, *arguments: str, path: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PATH": f"{link.parent}{os.pathsep}{path}"}
    return subprocess.run([str(link), *arguments], capture_output=True, text=True, check=False, env=environment)


def test_the_manifest_has_what_krew_requires(built: Path):
    document = the_manifest(built)
    assert (document["apiVersion"], document["kind"]) == ("krew.googlecontainertools.github.com/v1alpha2", "Plugin")
    assert document["metadata"] == {"name": "mooring"}
    spec = document["spec"]
    assert spec["version"].startswith("v")
    assert len(spec["shortDescription"]) <= 50
    assert spec["platforms"][0]["uri"] == URI
    assert {each["from"] for each in spec["platforms"][0]["files"]} == {"kubectl-mooring", "LICENSE"}


def test_the_installed_plugin_runs_the_mooring_on_the_path(built: Path, tmp_path: Path):
    link = installed(built, tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "mooring").write_text('#!/bin/sh\necho "mooring $*"\n', encoding="utf-8")
    (programs / "mooring").chmod(0o755)
    result = run(link, "explain", "web 0", path=f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert (result.returncode, result.stdout) == (0, "mooring explain web 0\n")


def test_without_mooring_nothing_is_fetched_and_the_error_names_what_to_install(built: Path, tmp_path: Path):
    link = installed(built, tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for installer in ("uvx", "uv", "pipx", "pip"):
        (programs / installer).write_text("#!/bin/sh\necho fetched\n", encoding="utf-8")
        (programs / installer).chmod(0o755)
    result = run(link, "explain", "web", path=str(programs))
    assert (result.returncode, result.stdout) == (127, "")
    version = the_manifest(built)["spec"]["version"].removeprefix("v")
    assert f"Install {version} from a checkout of its repository: pipx install ." in result.stderr


def test_the_same_tree_gives_the_same_bytes(built: Path, tmp_path: Path):
    assert build(tmp_path / "again").returncode == 0
    for name in ("kubectl-mooring.tar.gz", "mooring.yaml"):
        assert (built / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_an_archive_is_only_downloaded_by_https(tmp_path: Path):
    result = build(tmp_path / "built", "http://example.com/a.tar.gz")
    assert result.returncode == 2
    assert "--uri must begin with https://" in result.stderr
