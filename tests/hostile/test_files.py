"""What another user plants where Mooring writes: nothing is written elsewhere, nothing leaks, nothing waits for ever.

As root the tests give files to another user; otherwise Mooring is made to run as if by another user.
"""

from __future__ import annotations

import ast
import os
import secrets
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mooring.apiserver import EmbeddedApiServer
from mooring.base import files
from mooring.base.errors import OperatorMistake
from mooring.base.files import create_new, make_private, open_to_append, read_regular, write_private, write_whole
from mooring.cli import kubeconfig_file
from mooring.cli.configuration_flags import write_configuration
from mooring.cli.manifests import _write as write_manifests
from mooring.cli.plugin.scaffold import write_scaffold
from mooring.config import default_configuration
from mooring.plugins.catalogue import catalogue
from mooring.scheduler.serving.certificates import ServingCertificates, TlsOptions
from mooring.scheduler.shadow.report import JsonLines
from mooring_conformance import cases

SOURCE = Path(files.__file__).parents[1]
ANOTHER_USER = 65534


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """Opening a pipe may wait for ever; then the test fails instead."""

    def late(*_: Any) -> None:
        raise AssertionError("it waits for a pipe")

    before = signal.signal(signal.SIGALRM, late)
    timer = signal.setitimer(signal.ITIMER_REAL, 60)
    yield
    signal.signal(signal.SIGALRM, before)
    signal.setitimer(signal.ITIMER_REAL, *timer)  # that of the time budget, which assumes that it runs


@pytest.fixture
def belongs_to_another(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    def give_away(path: Path) -> None:
        if os.geteuid() == 0:
            os.chown(path, ANOTHER_USER, ANOTHER_USER, follow_symlinks=False)
        else:
            other = os.geteuid() + 1
            monkeypatch.setattr(os, "geteuid", lambda: other)

    return give_away


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    return folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    file = tmp_path / "precious.txt"
    file.write_text("precious\n")
    return file


Writer = Callable[[Path], None]


def write_report(path: Path) -> None:
    JsonLines(str(path)).close()


def write_cert_dir(path: Path) -> None:
    """The path is one of the pair's files."""
    path.with_name("kube-scheduler.crt" if path.suffix == ".key" else "kube-scheduler.key").unlink(missing_ok=True)
    ServingCertificates(TlsOptions(cert_dir=str(path.parent)), ["localhost"], 0.0)


def write_kubeconfig(path: Path) -> None:
    kubeconfig_file.check_writable(path)
    if (held := kubeconfig_file.write(path, EmbeddedApiServer(), 1)) is not None:
        held.close()


WRITERS: dict[str, tuple[str, Writer]] = {
    "a private file": ("key", lambda path: write_private(path, "secret")),
    "a public file": ("text", lambda path: write_whole(path, "text")),
    "a new file": ("new", lambda path: create_new(path, "text")),
    "a file to append to": ("lines", lambda path: open_to_append(path).close()),
    "the kubeconfig": ("x.kubeconfig", write_kubeconfig),
    "the configuration": (
        "config.yaml",
        lambda path: write_configuration(default_configuration(catalogue()), str(path)),
    ),
    "the manifests": ("role.yaml", lambda path: write_manifests(str(path.parent), {path.name: "kind: Role"})),
    "a scaffold": ("headroom.py", lambda path: print(write_scaffold("Headroom", str(path.parent)))),
    "the shadow's report": ("report", write_report),
    "a recorded case": ("cases.jsonl", lambda path: cases.append(path, {})),
    "a key in --cert-dir": ("kube-scheduler.key", write_cert_dir),
    "a certificate in --cert-dir": ("kube-scheduler.crt", write_cert_dir),
}
each_writer = pytest.mark.parametrize(("name", "write"), WRITERS.values(), ids=WRITERS.keys())


def attempt(write: Writer, path: Path) -> str:
    """What the user reads if it is refused; empty if it was written."""
    try:
        write(path)
    except (OperatorMistake, OSError) as error:
        return str(error)
    return ""


@each_writer
@pytest.mark.parametrize("to", ["a file", "nothing"])
def test_a_planted_link_is_not_followed_by(shared, precious, tmp_path, name, write, to):
    elsewhere = precious if to == "a file" else tmp_path / "elsewhere"
    (shared / name).symlink_to(elsewhere)
    refusal = attempt(write, shared / name)
    assert precious.read_text() == "precious\n"
    assert not (tmp_path / "elsewhere").exists()
    assert "symbolic link" in refusal or "exists already" in refusal or "File exists" in refusal
    assert "Traceback" not in refusal


@each_writer
def test_a_planted_hard_link_is_not_written_through_by(shared, precious, name, write):
    os.link(precious, shared / name)
    attempt(write, shared / name)
    assert precious.read_text() == "precious\n"


@each_writer
def test_a_planted_pipe_does_not_hold_up(shared, name, write):
    os.mkfifo(shared / name)
    assert attempt(write, shared / name)
    assert stat.S_ISFIFO((shared / name).stat().st_mode)


SECRETS = ("a private file", "the kubeconfig", "the configuration", "a key in --cert-dir")


@pytest.mark.parametrize(("name", "write"), [WRITERS[each] for each in SECRETS], ids=SECRETS)
def test_a_secret_takes_nothing_from_another_users_file_at_its_name(shared, belongs_to_another, name, write):
    planted = shared / name
    planted.write_text("")
    planted.chmod(0o666)
    with planted.open() as kept_open:
        belongs_to_another(planted)
        attempt(write, planted)
        assert kept_open.read() == ""
    found = planted.lstat()
    assert found.st_size == 0 or (stat.S_IMODE(found.st_mode) == 0o600 and found.st_nlink == 1)
    if os.geteuid() == 0:
        assert found.st_uid == 0


def test_drafts_have_names_that_cannot_be_guessed_and_are_never_readable(shared, monkeypatch):
    seen: list[tuple[str, int]] = []
    replace = os.replace

    def look(draft: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        seen.append((draft, stat.S_IMODE(os.stat(draft, dir_fd=src_dir_fd).st_mode)))
        replace(draft, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", look)
    before = os.umask(0)
    try:
        for _ in range(2):
            write_private(shared / "x.kubeconfig", "secret")
    finally:
        os.umask(before)
    names, modes = {draft for draft, _ in seen}, {mode for _, mode in seen}
    assert len(names) == 2
    assert modes == {0o600}
    assert all(len(draft) > 32 and str(os.getpid()) != draft.rpartition(".")[2] for draft in names)


def test_planted_drafts_are_never_opened(shared, precious, monkeypatch):
    """Even if the name were known beforehand."""
    guesses = iter(["guessed", "free"])
    monkeypatch.setattr(secrets, "token_hex", lambda _: next(guesses))
    (shared / ".mooring-guessed").symlink_to(precious)
    write_private(shared / "x.kubeconfig", "secret")
    assert precious.read_text() == "precious\n"
    assert (shared / "x.kubeconfig").read_text() == "secret"


def test_a_draft_that_is_swapped_before_the_rename_is_noticed(shared, monkeypatch):
    replace = os.replace

    def swap(draft: str, name: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        os.unlink(draft, dir_fd=src_dir_fd)
        (shared / draft).write_text("planted")
        replace(draft, name, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "replace", swap)
    with pytest.raises(OSError, match="another user replaced it"):
        write_private(shared / "x.kubeconfig", "secret")


def test_another_users_file_in_a_shared_folder_is_not_appended_to(shared, belongs_to_another):
    (shared / "report").write_text("")
    (shared / "report").chmod(0o666)
    if os.geteuid() != 0:  # the folder's owner is trusted, and would be the same here
        pytest.skip("needs root: a file of one user in a folder of another")
    belongs_to_another(shared / "report")
    with pytest.raises(OSError, match="belongs to another user"):
        open_to_append(shared / "report")


def test_a_key_that_mooring_made_and_others_can_read_becomes_private(tmp_path, capsys):
    ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], 0.0)
    key = tmp_path / "kube-scheduler.key"
    key.chmod(0o644)
    made = key.read_bytes()
    ServingCertificates(TlsOptions(cert_dir=str(tmp_path)), ["localhost"], 0.0)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert key.read_bytes() == made
    assert "kube-scheduler.key" in capsys.readouterr().err


def test_others_files_are_not_made_private(tmp_path, belongs_to_another):
    (tmp_path / "key").write_text("")
    (tmp_path / "key").chmod(0o644)
    belongs_to_another(tmp_path / "key")
    assert not make_private(tmp_path / "key")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o644


def test_reading_a_certificate_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "tls.crt")
    with pytest.raises(OSError, match="named pipe"):
        read_regular(tmp_path / "tls.crt")


def test_removing_the_kubeconfig_at_the_end_does_not_wait_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "x.kubeconfig")
    kubeconfig_file.remove_ours(tmp_path / "x.kubeconfig", "a token")
    assert (tmp_path / "x.kubeconfig").exists()


# One mechanism: no other code of ours opens files to write.

ALLOWED = {
    "base/files.py": "the mechanism",
    "cli/demo/traffic.py": "in a TemporaryDirectory, which is random and 0700",
    "cli/demo/scenario.py": "in a TemporaryDirectory, which is random and 0700",
    "scheduler/introspection/socket_folder.py": "the folder of the control socket, whose owner it checks",
}
WRITING = ("write_text", "write_bytes", "mkdir", "makedirs", "touch", "symlink_to")


def writes_in(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or ast.unparse(node.func).startswith("super()."):
            continue
        called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        modes = [
            each.value
            for each in (*node.args, *(word.value for word in node.keywords))
            if isinstance(each, ast.Constant)
        ]
        is_open = called == "open" and any(
            isinstance(each, str) and len(each) <= 3 and set(each) & set("wax+") and set(each) <= set("rwaxbt+")
            for each in modes
        )
        is_os_open = called == "open" and "O_CREAT" in ast.dump(node)
        if called in WRITING or is_open or is_os_open:
            yield node.lineno


def test_files_are_written_by_one_mechanism():
    found = {
        f"{path}:{line}"
        for path in [*SOURCE.rglob("*.py"), *Path(cases.__file__).parent.rglob("*.py")]
        if path not in {SOURCE / allowed for allowed in ALLOWED}
        for line in writes_in(ast.parse(path.read_text(encoding="utf-8")))
    }
    assert not found, "use mooring.base.files, which nothing planted can mislead"
