"""The SBOM states the runtime lock and nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import mooring

ROOT = Path(__file__).parents[1]
FILE = ROOT / "requirements/mooring.cdx.json"
TEXT = FILE.read_text(encoding="utf-8")
SBOM: dict[str, Any] = json.loads(TEXT)
PROJECT = f"pkg:pypi/mooring@{mooring.__version__}"


def locked_hashes() -> dict[str, set[str]]:
    """(package URL: SHA-256 of its files) of requirements/runtime.txt, read by other means than the script's."""
    text = (ROOT / "requirements/runtime.txt").read_text(encoding="utf-8")
    entries = re.split(r"^(?=\w)", text, flags=re.MULTILINE)[1:]
    return {
        "pkg:pypi/" + "@".join(re.split(r"==|\s", entry)[:2]): set(re.findall(r"--hash=sha256:(\w+)", entry))
        for entry in entries
    }


def test_it_is_valid_cyclonedx():
    assert SBOM["specVersion"] == "1.6"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(TEXT) is None


def test_it_states_every_locked_package_with_its_hashes_and_nothing_else():
    stated = {
        component["purl"]: {entry["content"] for entry in component["hashes"] if entry["alg"] == "SHA-256"}
        for component in SBOM["components"]
    }
    assert len(stated) == len(SBOM["components"]) > 20
    assert stated == locked_hashes()
    assert all(stated.values())


def test_a_component_is_named_as_in_its_package_url_and_has_a_licence():
    for component in SBOM["components"]:
        assert component["purl"] == component["bom-ref"] == f"pkg:pypi/{component['name']}@{component['version']}"
        assert component["licenses"]


def test_the_project_is_its_root():
    root = SBOM["metadata"]["component"]
    assert (root["purl"], root["type"]) == (PROJECT, "application")
    assert root["licenses"][0]["license"]["id"] == "Apache-2.0"


def test_every_component_is_a_dependency_of_the_project():
    above = {entry["ref"]: entry.get("dependsOn", []) for entry in SBOM["dependencies"]}
    reached, ahead = set[str](), [PROJECT]
    while ahead:
        reference = ahead.pop()
        reached.add(reference)
        ahead += [below for below in above[reference] if below not in reached]
    assert reached == {PROJECT, *locked_hashes()}


def test_it_has_no_timestamp():
    assert "timestamp" not in SBOM["metadata"]


def make(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", str(root / "scripts/make-sbom"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_it_is_what_the_lock_gives():
    done = make("--check")
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project with what the script reads of it."""
    for part in ("scripts", "requirements"):
        shutil.copytree(ROOT / part, tmp_path / part)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_made_twice_it_is_the_same_and_a_changed_lock_makes_another(copy):
    made, lock = copy / "requirements/mooring.cdx.json", copy / "requirements/runtime.txt"
    assert make(root=copy).returncode == 0
    assert made.read_text(encoding="utf-8") == TEXT

    # One digit of one hash.
    lock.write_text(re.sub(r"sha256:.", "sha256:f", lock.read_text(encoding="utf-8"), count=1), encoding="utf-8")
    stale = make("--check", root=copy)
    assert (stale.returncode, "run `make sbom`" in stale.stderr) == (1, True)
    assert make(root=copy).returncode == 0
    assert json.loads(made.read_text(encoding="utf-8"))["serialNumber"] != SBOM["serialNumber"]


def test_a_line_that_is_none_of_a_lock_is_refused(copy):
    lock = copy / "requirements/runtime.txt"
    lock.write_text(lock.read_text(encoding="utf-8") + "surprise>=1\n", encoding="utf-8")
    done = make("--check", root=copy)
    assert (done.returncode, "not a line of a lock" in done.stderr) == (1, True)
