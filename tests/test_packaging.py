"""What a user installs: the wheel's contents, the version it states, and the lock that `make` installs from."""

import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import mooring

ROOT = Path(__file__).parents[1]
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>.*?))? \\$", re.MULTILINE)


def build(folder: Path) -> Path:
    """The wheel, built without network by the backend that is installed."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(built: Path) -> set[str]:
    """The names of the files in the wheel."""
    with zipfile.ZipFile(built) as archive:
        return set(archive.namelist())


def test_the_same_source_gives_the_same_wheel(built, tmp_path):
    assert build(tmp_path).read_bytes() == built.read_bytes()


def test_the_wheel_says_that_it_is_typed(wheel):
    assert "mooring/py.typed" in wheel


def test_the_wheel_has_the_recorded_decisions(wheel):
    recorded = {file.name for file in (ROOT / "src/mooring/conformance/recorded").iterdir()}
    assert len(recorded) == 12
    assert {f"mooring/conformance/recorded/{name}" for name in recorded} <= wheel


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = ROOT / "src"
    files = {path for path in (source / "mooring").rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    assert {path.relative_to(source).as_posix() for path in files} <= wheel


def test_the_wheel_holds_the_plugins(wheel):
    assert {"mooring/plugins/default/__init__.py", "mooring/plugins/examples/__init__.py"} <= wheel


def test_the_wheel_holds_its_sbom(wheel):
    assert f"mooring-{mooring.__version__}.dist-info/sboms/mooring.cdx.json" in wheel


def test_the_wheel_holds_the_package_its_metadata_the_launcher_and_nothing_else(wheel):
    data, info = f"mooring-{mooring.__version__}.data", f"mooring-{mooring.__version__}.dist-info"
    assert {name.partition("/")[0] for name in wheel} == {"mooring", data, info}
    assert [name for name in wheel if name.startswith(data)] == [f"{data}/scripts/mooring"]


def test_the_command_states_the_version_of_the_package():
    command = [sys.executable, "-c", "from mooring.cli.main import main; main()", "version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert mooring.__version__ in done.stdout.split()
    assert metadata.version("mooring") == mooring.__version__


def locked(file: str) -> dict[str, list[Version]]:
    """The versions that a lock file pins; a package may have one for older and one for newer Pythons."""
    pins: dict[str, list[Version]] = {}
    for pin in PINNED.finditer((ROOT / "requirements" / file).read_text(encoding="utf-8")):
        pins.setdefault(canonicalize_name(pin["name"]), []).append(Version(pin["version"]))
    return pins


def asked_for(*groups: str) -> list[Requirement]:
    """The requirements of some dependency groups of pyproject.toml, without what they include of one another."""
    entries = [entry for group in groups for entry in PYPROJECT["dependency-groups"][group]]
    return [Requirement(entry) for entry in entries if isinstance(entry, str)]


RUNTIME = [Requirement(entry) for entry in PYPROJECT["project"]["dependencies"]]

LOCKS = {
    "runtime.txt": RUNTIME,
    "build.txt": asked_for("build"),
    "dev.txt": [*RUNTIME, *asked_for("build", "dev")],
    "docs.txt": asked_for("docs"),
}


@pytest.mark.parametrize(("file", "requirements"), LOCKS.items(), ids=LOCKS.keys())
def test_the_lock_satisfies_what_the_project_asks_for(file, requirements):
    pins = locked(file)
    outdated = [
        str(requirement)
        for requirement in requirements
        if not (versions := pins.get(canonicalize_name(requirement.name)))
        or not all(requirement.specifier.contains(version, prereleases=True) for version in versions)
    ]
    assert not outdated, f"requirements/{file} is behind pyproject.toml; run `make lock`"


@pytest.mark.parametrize("file", ["runtime.txt", "build.txt"])
def test_a_smaller_lock_is_a_cut_out_of_the_development_lock(file):
    assert locked(file).items() <= locked("dev.txt").items()


def test_the_documentation_and_development_share_an_environment():
    development, documentation = locked("dev.txt"), locked("docs.txt")
    shared = development.keys() & documentation.keys()
    assert {name: documentation[name] for name in shared} == {name: development[name] for name in shared}


@pytest.mark.parametrize("file", LOCKS)
def test_the_lock_names_no_index(file):
    text = (ROOT / "requirements" / file).read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^-", text, re.MULTILINE)
