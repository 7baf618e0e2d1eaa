"""The control socket: neither side trusts what another user planted, and neither waits or reads without end."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.cli.programs import PATIENCE_SECONDS, private_home
from tests.hostile.bounds import bounded

from mooring.base import log
from mooring.base.errors import Fault
from mooring.scheduler.introspection import explain_client, explain_socket
from mooring.scheduler.introspection import socket_folder as control_folder
from mooring.scheduler.introspection.explain_client import QueryResult, query
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.introspection.socket_folder import digest, socket_folder

HERE = "tests.hostile.test_sockets"
SERVER = "https://one:6443"
REQUEST = {"explain": "shop/web"}


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with private_home() as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(folder))
        yield folder


Talk = Callable[[socket.socket], None]


@contextlib.contextmanager
def planted(talk: Talk, folder: Path | None = None, mode: int = 0o700) -> Iterator[Path]:
    """A process that listens where a scheduler would."""
    folder = folder or socket_folder()
    folder.mkdir(exist_ok=True)
    folder.chmod(mode)
    path = folder / f"{digest(SERVER)}-1-1.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.settimeout(PATIENCE_SECONDS)

        def serve() -> None:
            with contextlib.suppress(OSError), listener.accept()[0] as connection:
                connection.settimeout(PATIENCE_SECONDS)
                talk(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield path
        # Wake it where no client came.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as waking:
            waking.connect(str(path))
        thread.join(PATIENCE_SECONDS)
    path.unlink(missing_ok=True)


def responding(line: bytes) -> Talk:
    def talk(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(line)

    return talk


def silent(connection: socket.socket) -> None:
    while connection.recv(1000):
        pass


def dripping(connection: socket.socket) -> None:
    """A byte at a time, more often than the client's time for a response is over."""
    connection.recv(1000)
    connection.settimeout(0.02)
    ends = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < ends:
        try:
            if not connection.recv(1):
                return
        except TimeoutError:
            connection.sendall(b" ")


def queried() -> QueryResult:
    return query(SERVER, REQUEST)


def test_a_response_of_ones_own_scheduler_is_read():
    with planted(responding(b'{"found": false}\n')):
        assert queried() == QueryResult([{"found": False}], [])


def test_without_a_folder_no_scheduler_is_queried():
    assert queried() == QueryResult([], [])


def as_another_user(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the files and processes of this test were another user's."""
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)


def test_a_folder_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch):
    with planted(responding(b'{"found": true}\n')):
        as_another_user(monkeypatch)
        found = queried()
    assert found.responses == []
    assert "belongs to another user" in found.problems[0]
    assert "XDG_RUNTIME_DIR" in found.problems[0]


def test_a_folder_that_others_can_enter_is_not_used():
    with planted(responding(b"{}\n"), mode=0o777):
        found = queried()
    assert found.responses == []
    assert "mode 0777); chmod 700 it" in found.problems[0]


def test_a_link_to_a_folder_is_not_used(home: Path):
    with planted(responding(b"{}\n"), folder=home / "elsewhere"):
        socket_folder().symlink_to(home / "elsewhere")
        found = queried()
    assert found.responses == []
    assert "is a link or a file and not a folder" in found.problems[0]


def test_a_link_to_a_socket_is_not_used(home: Path):
    with planted(responding(b"{}\n"), folder=home / "elsewhere") as path:
        socket_folder().mkdir(mode=0o700)
        (socket_folder() / path.name).symlink_to(path)
        found = queried()
    assert found.responses == []
    assert "is not a socket" in found.problems[0]


def test_a_socket_of_another_user_is_not_used(monkeypatch: pytest.MonkeyPatch):
    with planted(responding(b"{}\n")) as path:
        monkeypatch.setattr(explain_client, "check_socket_folder", lambda _: None)  # the folder alone is this user's
        as_another_user(monkeypatch)
        found = queried()
    assert found.responses == []
    assert f"{path} belongs to another user" in found.problems[0]


def test_a_process_of_another_user_is_not_queried(monkeypatch: pytest.MonkeyPatch):
    received: list[bytes] = []
    with planted(lambda connection: received.append(connection.recv(1000))):
        monkeypatch.setattr(control_folder, "peer_uid", lambda _: os.geteuid() + 1)
        found = queried()
    assert found.responses == []
    assert "is served by another user and was not queried" in found.problems[0]
    assert received in ([], [b""])


@pytest.mark.skipif(not hasattr(socket, "SO_PEERCRED"), reason="Linux has the peer's uid this way")
def test_the_system_knows_the_user_at_the_other_end():
    left, right = socket.socketpair(socket.AF_UNIX)
    with left, right:
        assert control_folder.peer_uid(left) == os.geteuid()
        assert control_folder.is_trusted(left)


def test_no_more_sockets_are_queried_than_schedulers_may_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explain_client, "MOST_SOCKETS", 0)
    with planted(responding(b"{}\n")):
        found = queried()
    assert found.responses == []
    assert "holds 1 sockets of this cluster; 0 were tried" in found.problems[0]


def test_a_socket_whose_scheduler_was_killed_is_removed_and_a_busy_one_is_not(monkeypatch: pytest.MonkeyPatch):
    folder = socket_folder()
    folder.mkdir(mode=0o700)
    path = folder / f"{digest(SERVER)}-1-1.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    assert queried() == QueryResult([], [])
    assert not path.exists()
    monkeypatch.setattr(explain_client, "RESPONSE_SECONDS", 0.2)
    with planted(silent):
        [problem] = queried().problems
        assert "did not respond within 0.2 s" in problem
        assert path.exists()


INVALID = {
    "no JSON": (b"<html>\n", "invalid response"),
    "a list": (b"[1]\n", "invalid response"),
    "deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n", "levels deep"),
    "very deep": (b"[" * 1_000_000 + b"\n", "levels deep"),
    "no UTF-8": (b'{"a": "\xff"}\n', "UTF-8"),
}


@pytest.mark.parametrize(("line", "message"), INVALID.values(), ids=INVALID.keys())
def test_an_invalid_response_is_a_sentence(line: bytes, message: str):
    with planted(responding(line)):
        found = queried()
    assert found.responses == []
    assert message in found.problems[0]


def flooded(mebibytes: int) -> list[str]:
    """In a child: the problem of a process that writes so much without a line break."""
    with private_home() as folder:
        os.environ["XDG_RUNTIME_DIR"] = str(folder)

        def flood(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                for _ in range(mebibytes):
                    connection.sendall(b"x" * (1 << 20))

        with planted(flood):
            return queried().problems


def test_a_response_without_end_is_not_read_to_its_end():
    [problem] = bounded(f"{HERE}:flooded", 400, cpu_seconds=30, memory_mib=400)
    assert f"responded with more than {explain_client.MOST_RESPONSE_BYTES} bytes" in problem


def trickle(connection: socket.socket) -> None:
    """One byte whenever one is read: no single wait is long."""
    with contextlib.suppress(OSError):
        for _ in range(100_000):
            connection.sendall(b"x")


def test_a_response_byte_by_byte_is_not_waited_for_longer(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explain_client, "RESPONSE_SECONDS", 0.0)
    with planted(trickle):
        [problem] = queried().problems
    assert "did not respond within" in problem or "cannot be queried" in problem


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """`mooring explain web -n shop`, of a pod that the API server has."""
    from mooring.cli import kubeconfig_file
    from mooring.cli.main import cli
    from mooring.client import ApiClient, Connection
    from mooring.testing import a_pod

    async def get_as(*_: Any) -> Any:
        return a_pod("web", namespace="shop")

    monkeypatch.setattr(ApiClient, "get_as", get_as)
    monkeypatch.setattr(kubeconfig_file, "connection_here", lambda _: Connection(server=SERVER, source="a test"))
    return lambda: cli.main(["explain", "web", "-n", "shop"], standalone_mode=False)


Explain = Callable[[], None]


def test_explain_shows_the_response_of_a_socket_with_escapes(explain: Explain, capsys: pytest.CaptureFixture[str]):
    with planted(responding(json.dumps({"profiles": ["\x1b[2J\u202e"]}, ensure_ascii=False).encode() + b"\n")):
        explain()
    assert r"the one that runs serves \x1b[2J\u202e." in capsys.readouterr().out


def test_explain_reports_a_planted_folder_and_goes_on(explain: Explain, capsys: pytest.CaptureFixture[str], home: Path):
    with planted(responding(b"{}\n"), folder=home / "elsewhere"):
        socket_folder().symlink_to(home / "elsewhere")
        explain()
    shown = capsys.readouterr()
    assert "Warning: no scheduler on this machine can be queried" in shown.err
    assert "Pod shop/web" in shown.out


NO_RESPONSE = {
    "garbage": (responding(b"<html>\n"), "sent an invalid response"),
    "nothing": (responding(b""), "closed the connection without a response"),
    "an error": (responding(b'{"error": "invalid request"}\n'), "the scheduler responded with an error"),
    "silence": (silent, "did not respond within 0.2 s"),
    "a byte at a time": (dripping, "did not respond within 0.2 s"),
    "that it is busy": (responding(b'{"heldUp": null}\n'), "is busy and has not responded in time"),
}


@pytest.mark.parametrize(("scheduler", "sentence"), NO_RESPONSE.values(), ids=NO_RESPONSE.keys())
def test_explain_fails_with_a_sentence_where_the_response_is(
    scheduler: Any, sentence: str, explain: Explain, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    if scheduler in (silent, dripping):
        monkeypatch.setattr(explain_client, "RESPONSE_SECONDS", 0.2)
    with planted(scheduler), pytest.raises(Fault, match=sentence):
        explain()
    assert "A scheduler runs here and does not respond, so this is all that is known." in capsys.readouterr().out


def test_explain_reports_a_response_of_another_shape(explain: Explain):
    odd = json.dumps({"found": True, "decision": [1]}).encode() + b"\n"
    with planted(responding(odd)), pytest.raises(Fault, match="is it of another version of Mooring"):
        explain()


def sockets_in(folder: Path) -> list[Path]:
    return list(folder.rglob("*.sock"))


@contextlib.asynccontextmanager
async def a_scheduler() -> Any:
    opened = ExplainSocket(SERVER, lambda request: {"pod": request["explain"], "long": "x" * 5_000_000})
    await opened.open()
    try:
        [path] = socket_folder().glob("*.sock")
        yield str(path)
    finally:
        await opened.close()


async def send(path: str, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
    with contextlib.suppress(ConnectionError):
        writer.write(line)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_a_scheduler_bounds_a_request():
    async with a_scheduler() as path:
        for line, message in {
            b"x" * (explain_socket.MOST_REQUEST_BYTES + 1): b"a request has at most 65536 bytes",
            b"[" * 60_000 + b"\n": b"levels deep",
            b'{"explain":' * 900 + b"1" + b"}" * 900 + b"\n": b"levels deep",
            b'{"explain": "\xff"}\n': b"invalid request",
            b"[1]\n": b"invalid request",
            b"\n": b"invalid request",
        }.items():
            assert message in await send(path, line)
        assert (await send(path, b'{"explain": "a/b"}\n')).startswith(b'{"pod": "a/b"')


async def test_a_scheduler_serves_no_other_user(monkeypatch: pytest.MonkeyPatch):
    async with a_scheduler() as path:
        monkeypatch.setattr(control_folder, "peer_uid", lambda _: os.geteuid() + 1)
        assert await send(path, b'{"explain": "a/b"}\n') == b""


async def test_a_scheduler_has_so_many_connections_and_no_more(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explain_socket, "REQUEST_SECONDS", 10 * PATIENCE_SECONDS)
    async with a_scheduler() as path:
        silent_ones = [await asyncio.open_unix_connection(path) for _ in range(explain_socket.MOST_CONNECTIONS)]
        assert await send(path, b'{"explain": "a/b"}\n') == b""
        reader, writer = silent_ones[0]
        writer.write(b'{"explain": "a/b"}\n')
        assert (await reader.readexactly(10)).startswith(b'{"pod": "a')
        for _, each in silent_ones:
            each.close()


async def test_a_scheduler_keeps_no_response_for_a_process_that_does_not_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(explain_socket, "REQUEST_SECONDS", 0.2)
    async with a_scheduler() as path:
        with socket.socket(socket.AF_UNIX) as lazy:
            lazy.connect(path)
            lazy.sendall(b'{"explain": "a/b"}\n')
            ends = asyncio.get_running_loop().time() + PATIENCE_SECONDS
            while len(asyncio.all_tasks()) > 1:
                assert asyncio.get_running_loop().time() < ends
                await asyncio.sleep(0)
            received = b""
            lazy.setblocking(False)
            with contextlib.suppress(BlockingIOError, ConnectionError):
                while chunk := lazy.recv(1 << 20):
                    received += chunk
            assert len(received) < 5_000_000


@pytest.mark.parametrize("kind", ["a link", "another user's folder"])
async def test_a_scheduler_opens_no_socket_in_a_planted_folder(kind: str, home: Path, monkeypatch: pytest.MonkeyPatch):
    if kind == "a link":
        (home / "elsewhere").mkdir()
        socket_folder().symlink_to(home / "elsewhere")
    else:
        socket_folder().mkdir()
        as_another_user(monkeypatch)
    lines: list[str] = []
    monkeypatch.setattr(log.Log, "warning", lambda _, message, **values: lines.append(f"{message} {values}"))
    opened = ExplainSocket(SERVER, lambda _: {})
    await opened.open()
    await opened.close()
    assert "no control socket" in lines[0]
    assert sockets_in(home) == []


async def test_a_folder_of_ones_own_that_others_can_enter_is_closed_to_them():
    socket_folder().mkdir()
    socket_folder().chmod(0o777)
    async with a_scheduler() as path:
        assert socket_folder().stat().st_mode & 0o777 == 0o700
        assert os.stat(path).st_mode & 0o777 == 0o600


async def test_a_child_clusters_pipe_is_read_however_long_a_line_is():
    from mooring.cli.child_cluster import LONGEST_LINE, _lines

    stream = asyncio.StreamReader()
    stream.feed_data(b"short\n" + b"x" * (3 * LONGEST_LINE) + b"\nlast")
    stream.feed_eof()
    found = [line async for line in _lines(stream)]
    assert (found[0], found[-1]) == (b"short", b"last")
    assert sum(map(len, found[1:-1])) == 3 * LONGEST_LINE
