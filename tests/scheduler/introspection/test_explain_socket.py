"""The local socket on which a scheduler serves `mooring explain`."""

import asyncio
import socket
from typing import Any

from tests.scheduler.conftest import PATIENCE_SECONDS

from mooring.scheduler.introspection.explain_client import query
from mooring.scheduler.introspection.explain_socket import ExplainSocket
from mooring.scheduler.introspection.socket_folder import socket_folder
from mooring.scheduler.plugin_runtime.watchdog import HeldUp


def responses_of(server: str) -> list[dict[str, Any]]:
    requested = query(server, {"explain": "default/web"})
    assert requested.problems == []
    return requested.responses


async def test_a_scheduler_responds_to_queries_about_its_server():
    control = ExplainSocket("https://one:6443", lambda request: {"requested": request["explain"]})
    await control.open()
    assert await asyncio.to_thread(responses_of, "https://one:6443/") == [{"requested": "default/web"}]
    assert await asyncio.to_thread(responses_of, "https://another:6443") == []
    await control.close()
    assert responses_of("https://one:6443") == []


async def test_two_schedulers_of_one_server_both_respond():
    controls = [
        ExplainSocket("https://one", response) for response in (lambda _: {"number": 1}, lambda _: {"number": 2})
    ]
    for control in controls:
        await control.open()
    responses = await asyncio.to_thread(responses_of, "https://one")
    assert sorted(response["number"] for response in responses) == [1, 2]
    for control in controls:
        await control.close()


async def test_a_query_that_makes_no_sense_gets_a_response_all_the_same():
    control = ExplainSocket("https://one", lambda request: {"value": request["missing"]})
    await control.open()
    [response] = await asyncio.to_thread(responses_of, "https://one")
    assert "error" in response
    await control.close()


async def test_a_client_that_connects_and_sends_nothing_holds_up_no_other(monkeypatch):
    monkeypatch.setattr("mooring.scheduler.introspection.explain_socket.REQUEST_SECONDS", 10 * PATIENCE_SECONDS)
    control = ExplainSocket("https://one", lambda _: {})
    await control.open()
    [path] = socket_folder().glob("*.sock")
    reader, writer = await asyncio.open_unix_connection(str(path))
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await control.close()
        assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_a_response_that_cannot_be_written_is_an_error_not_silence():
    control = ExplainSocket("https://one", lambda _: {"odd": object()})
    await control.open()
    [response] = await asyncio.to_thread(responses_of, "https://one")
    assert "invalid request" in response["error"]
    await control.close()


async def test_only_its_own_user_can_enter():
    control = ExplainSocket("https://one", lambda _: {})
    await control.open()
    assert socket_folder().stat().st_mode & 0o777 == 0o700
    await control.close()


def test_the_socket_of_a_scheduler_that_was_killed_is_tidied_away():
    import hashlib

    folder = socket_folder()
    folder.mkdir(mode=0o700)
    left = folder / f"{hashlib.sha256(b'https://one').hexdigest()[:16]}-1-1.sock"
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(left))
    assert responses_of("https://one") == []
    assert not left.exists()


async def test_without_any_folder_for_it_the_scheduler_works_all_the_same(monkeypatch, capsys):
    def nowhere() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.gettempdir", nowhere)
    control = ExplainSocket("https://one", lambda _: {})
    await control.open()
    assert "`mooring explain` cannot reach this scheduler" in capsys.readouterr().err
    await control.close()


async def test_while_the_loop_is_held_up_the_response_is_what_holds_it_up(monkeypatch):
    monkeypatch.setattr("mooring.scheduler.introspection.explain_socket.REQUEST_SECONDS", 0.5)
    held_up = HeldUp("Loops", "reserve", "loops.py:7", 12.0)
    control = ExplainSocket("https://one", lambda _: {"found": False}, lambda: held_up)
    await control.open()
    # Here, on the loop that would respond: it does not run meanwhile.
    assert responses_of("https://one") == [{"heldUp": held_up._asdict()}]
    await control.close()
