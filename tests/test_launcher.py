"""The installed `mooring`: sh that ignores SIGHUP where Mooring reloads on it, and then Python."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import pytest
from tests.cli.programs import PATIENCE_SECONDS, clean_environment, private_home
from tests.test_packaging import build

from mooring.cli import hangup
from mooring_conformance.cases import RECORDED, read

LAUNCHER = Path(__file__).parents[1] / "launcher" / "mooring"
PAUSE_SECONDS = 0.0005
"""Between signals of a storm: without any, handling them may take all the time that the process gets."""
HANGUP_BIT = 1 << (signal.SIGHUP - 1)

# Stands in for Python: prints which signals it was started to ignore, and its arguments.
REPORT = """#!/bin/sh
read -r ignored <<STATUS
$(grep SigIgn /proc/self/status)
STATUS
echo "$ignored"
printf '%s\\n' "$@"
"""


@pytest.fixture(scope="module", autouse=True)
def hangups_end_programs():
    """Programs inherit that SIGHUP is ignored, as it is where the tests run under `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what pip installs."""
    home = an_environment(tmp_path_factory.mktemp("installed") / "home", wheel)
    return home / "bin"


def an_environment(home: Path, wheel: Path) -> Path:
    """A virtual environment with Mooring in it, as pip installs it; its libraries are those of the tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--python", str(home / "bin/python")]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True)
    (packages,) = home.glob("lib/python3*/site-packages")
    (packages / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    return home


def call(program: str | Path, *arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=clean_environment(cwd) | {"PYTHONWARNINGS": "error"} | environment,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


COMMANDS = {
    "mooring run": ("mooring", ["run", "--config=x"], True),
    "mooring run without flags": ("mooring", ["run"], True),
    "kube-scheduler": ("kube-scheduler", ["--config=x"], True),
    "kube-scheduler without flags": ("kube-scheduler", [], True),
    "mooring up": ("mooring", ["up", "--nodes=2"], False),
    "mooring": ("mooring", [], False),
    "mooring explain of a pod called run": ("mooring", ["explain", "run"], False),
}


@pytest.mark.parametrize(("name", "arguments", "reloads"), COMMANDS.values(), ids=COMMANDS.keys())
def test_python_starts_with_sighup_ignored_where_it_would_reload(programs, tmp_path, name, arguments, reloads):
    shutil.copy(programs / "mooring", tmp_path / name)
    (tmp_path / "report").write_text(REPORT, encoding="utf-8")
    (tmp_path / "report").chmod(0o755)
    (tmp_path / "mooring-python").write_text(f"#!{tmp_path}/report -P\n", encoding="utf-8")
    done = call(tmp_path / name, *arguments, cwd=tmp_path)
    ignored, *given = done.stdout.splitlines()
    assert bool(int(ignored.split()[1], 16) & HANGUP_BIT) == reloads, done.stderr
    assert given == ["-P", str(tmp_path / name), *arguments]
    assert hangup.reloads(name, arguments) == reloads


@pytest.mark.parametrize(("name", "arguments"), [("mooring", ["run"]), ("kube-scheduler", [])])
def test_a_storm_of_signals_from_the_first_line_to_the_end_ends_nothing(programs, name, arguments):
    """It exits because there is no cluster, with a message."""
    with private_home() as home:
        (home / name).symlink_to(programs / "mooring")
        process = subprocess.Popen(
            [home / name, *arguments, "--kubeconfig=absent"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(home),
            cwd=home,
        )
        until_sh_ignores_or_python_runs(process.pid)
        while process.poll() is None:
            process.send_signal(signal.SIGHUP)
            time.sleep(PAUSE_SECONDS)
        _, errors = process.communicate()
        assert process.returncode == 2, errors
        assert "absent" in errors


def until_sh_ignores_or_python_runs(pid: int) -> None:
    """Python may never run with the signal's default. sh does, until its first line."""
    while True:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
        (ignored,) = [line.split()[1] for line in status.splitlines() if line.startswith("SigIgn")]
        if int(ignored, 16) & HANGUP_BIT or "python" in os.readlink(f"/proc/{pid}/exe"):
            return


def test_a_link_and_a_link_to_a_link_run_it(programs, tmp_path):
    (tmp_path / "one").symlink_to(programs / "mooring")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "two").symlink_to("../one")
    for program in (tmp_path / "one", "./one", "elsewhere/two"):
        done = call(program, "version", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("mooring ")
    assert call("one", "version", cwd=tmp_path, PATH=f":{os.environ['PATH']}").returncode == 0


def test_a_copy_runs_while_the_installed_one_is_on_the_path_and_otherwise_prints_what_to_do(programs, tmp_path):
    shutil.copy(programs / "mooring", tmp_path / "kube-scheduler")
    found = call(tmp_path / "kube-scheduler", "--version", cwd=tmp_path, PATH=f"{programs}:{os.environ['PATH']}")
    assert found.returncode == 0, found.stderr
    missing = call(tmp_path / "kube-scheduler", "--version", cwd=tmp_path, PATH="/usr/bin:/bin")
    assert missing.returncode == 127
    assert (
        "there is no mooring-python beside it, nor on the PATH. Make a link to the installed mooring, not a copy"
        in missing.stderr
    )


@pytest.mark.parametrize("folder", ["with space", "long" * 50])
def test_a_python_that_no_first_line_can_name_is_found(wheel, tmp_path, folder):
    """Installers write a line for sh there, since the kernel takes no space and few characters."""
    home = an_environment(tmp_path / folder, wheel)
    assert (home / "bin" / "mooring-python").read_text(encoding="utf-8").startswith("#!/bin/sh\n")
    done = call(home / "bin" / "mooring", "version", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("mooring ")


def test_an_editable_installation_has_the_same_launcher(programs):
    """`make` installs so; what it installed is renewed when the launcher changes."""
    ours = Path(sysconfig.get_path("scripts")) / "mooring"
    source = Path(__file__).parents[1] / "launcher" / "mooring"
    assert ours.read_text(encoding="utf-8") == source.read_text(encoding="utf-8")
    assert ours.read_text(encoding="utf-8") == (programs / "mooring").read_text(encoding="utf-8")


def test_processes_that_a_command_starts_do_not_run_it_again(tmp_path: Path):
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(b"".join(read(RECORDED / "ports.jsonl.xz")[:4]))
    command = [sys.executable, str(LAUNCHER), "conformance", "--jobs=2", str(cases)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=clean_environment(tmp_path), timeout=PATIENCE_SECONDS, check=False
    )
    assert (done.returncode, done.stdout.split()) == (0, ["family", "cases", "agree", "cases", "4", "4"]), done.stderr
