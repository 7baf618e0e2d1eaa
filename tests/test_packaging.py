"""What a user installs: the wheel's contents, the version it states, and the lock that `make` installs from."""

import os
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
import mooring_conformance

ROOT = Path(__file__).parents[1]
CONFORMANCE = ROOT / "conformance"
LARGEST_WHEEL = 2_100_000
"""In bytes. It is about 2 MB; with the recorded decisions it would be 5."""
PYPROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

PINNED = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?: ; (?P<marker>.*?))? \\$", re.MULTILINE)


def build(folder: Path, project: Path = ROOT) -> Path:
    """The wheel, built without network by the backend that is installed."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=False)
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


def test_the_wheel_is_marked_as_typed(wheel):
    assert "mooring/py.typed" in wheel


def test_the_wheel_is_small(built, wheel):
    """Recorded decisions and generators are not in it: a scheduler in a cluster does not need them."""
    assert not [name for name in wheel if "conformance" in name and name != "mooring/cli/conformance.py"]
    assert built.stat().st_size < LARGEST_WHEEL


@pytest.fixture(scope="module")
def built_conformance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("conformance"), CONFORMANCE)


def test_the_wheel_of_conformance_holds_its_package_with_the_recorded_decisions(built_conformance):
    with zipfile.ZipFile(built_conformance) as archive:
        wheel = set(archive.namelist())
    source = CONFORMANCE / "mooring_conformance"
    files = {path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    info = f"mooring_conformance-{mooring.__version__}.dist-info"
    assert len([path for path in files if path.parent.name == "recorded"]) == 12
    assert {name for name in wheel if not name.startswith(info)} == {
        path.relative_to(CONFORMANCE).as_posix() for path in files
    }


def test_both_distributions_have_one_version():
    assert mooring_conformance.__version__ == mooring.__version__


def run_installed(
    folder: Path, wheels: list[Path], *arguments: str, before: str = ""
) -> subprocess.CompletedProcess[str]:
    """Runs `mooring` from unpacked wheels, which come before the checkout on the path."""
    for each in wheels:
        with zipfile.ZipFile(each) as archive:
            archive.extractall(folder)
    code = f"""if True:
        import sys, mooring.cli.main
        assert mooring.__file__.startswith({str(folder)!r})
        {before}
        mooring.cli.main.main()
    """
    command = [sys.executable, "-P", "-c", code, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_conformance_without_its_package_is_an_error_that_names_it(built, tmp_path):
    done = run_installed(tmp_path, [built], "conformance", before="sys.modules['mooring_conformance'] = None")
    assert done.returncode == 2, done.stderr
    assert f"in a checkout of Mooring {mooring.__version__}, run `pip install . ./conformance`" in done.stderr


def test_conformance_of_another_version_is_an_error(built, built_conformance, tmp_path):
    other = "import mooring_conformance; mooring_conformance.__version__ = '0.0.1'"
    done = run_installed(tmp_path, [built, built_conformance], "conformance", before=other)
    assert done.returncode == 2, done.stderr
    assert "mooring-conformance 0.0.1 does not compare with Mooring" in done.stderr


def test_conformance_runs_from_the_two_wheels(built, built_conformance, tmp_path):
    arguments = ["conformance", "--family", "ports", "--jobs", "1", "--no-churn"]
    done = run_installed(tmp_path, [built, built_conformance], *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].split() == ["ports", "400", "400"]


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


def required_by(*groups: str) -> list[Requirement]:
    """The requirements of some dependency groups of pyproject.toml, without what they include of one another."""
    entries = [entry for group in groups for entry in PYPROJECT["dependency-groups"][group]]
    return [Requirement(entry) for entry in entries if isinstance(entry, str)]


RUNTIME = [Requirement(entry) for entry in PYPROJECT["project"]["dependencies"]]

LOCKS = {
    "runtime.txt": RUNTIME,
    "build.txt": required_by("build"),
    "dev.txt": [*RUNTIME, *required_by("build", "dev")],
    "docs.txt": required_by("docs"),
}


@pytest.mark.parametrize(("file", "requirements"), LOCKS.items(), ids=LOCKS.keys())
def test_the_lock_satisfies_the_requirements_of_the_project(file, requirements):
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
