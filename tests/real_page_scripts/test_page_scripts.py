"""Pure modules of the page (filter expressions, layout, formats, addresses), tested by Node's own test runner."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STATIC = HERE.parents[1] / "src" / "mooring" / "web" / "static"
OLDEST = 20
MISSING = f"the page's scripts are tested by Node.js {OLDEST} or newer, which is not on the PATH"


@pytest.fixture(scope="module")
def node() -> str:
    """The program. Browsers test the same files; so its absence is a skip, also in CI."""
    found = shutil.which("node")
    if found is None:
        pytest.skip(MISSING)
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True, timeout=60).stdout
    if int(version.strip().removeprefix("v").partition(".")[0]) < OLDEST:
        pytest.skip(f"{MISSING}; {version.strip()} is")
    return found


@pytest.mark.parametrize("suite", sorted(HERE.glob("*.test.mjs")), ids=lambda path: path.stem)
def test_the_scripts_behave(node: str, suite: Path, tmp_path: Path) -> None:
    # A copy that is named a module: Node would take *.js for CommonJS.
    modules = tmp_path / "static"
    shutil.copytree(STATIC, modules)
    (modules / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    shutil.copy(suite, tmp_path)
    run = subprocess.run(
        [node, "--test", str(tmp_path / suite.name)],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TZ": "UTC"},
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
