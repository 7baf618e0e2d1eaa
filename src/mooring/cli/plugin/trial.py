"""What `mooring plugin test` does: import, check the contract, build it, and run the tests that lie beside it."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from mooring.base.errors import OperatorMistake
from mooring.cli.common import registry_with
from mooring.cli.output import print_line

PLUGIN = "mooring.testing.pytest_plugin"
"""Runs coroutine tests, and lets tests import their neighbours as plugin files do."""


def try_out(path: str) -> int:
    """The exit code: 0 if all checks and tests passed."""
    from mooring.framework.registry import PluginEntry

    known = {entry.name for entry in registry_with(())}
    found: list[PluginEntry] = [entry for entry in registry_with([path]) if entry.name not in known]
    for entry in found:
        points = ", ".join(point.config_name for point in entry.points)
        print_line(f"{entry.name}: keeps the contract, with the points {points}")
    tests = tests_beside(Path(path))
    if not tests:
        expected = "test_*.py" if Path(path).is_dir() else f"test_{Path(path).name}"
        print_line(f"There are no tests beside {path}; a file {expected} there would be run.")
        return 0
    if find_spec("pytest") is None:
        raise OperatorMistake(
            f"its tests need pytest, which is not installed here: {sys.executable} -m pip install pytest"
        )
    print_line(f"Running {', '.join(str(test) for test in tests)}", err=True)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUGIN, *map(str, tests)]
    if find_spec("pytest_asyncio") is not None:
        # It warns until this is set, and a scaffold has no pytest settings.
        command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    return 1 if subprocess.run(command, check=False).returncode else 0


def tests_beside(path: Path) -> list[Path]:
    """A folder's test files; for a file, the test that is named after it. A module named `module:Class` has none."""
    if path.is_dir():
        return sorted({*path.glob("test_*.py"), *path.glob("*_test.py")})
    candidates = [path.with_name(f"test_{path.name}"), path.with_name(f"{path.stem}_test.py")]
    return [file for file in candidates if file.exists()]
