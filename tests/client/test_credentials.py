"""Credentials that change while we run: token files, plugins; and what is never sent."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from mooring.base.clock import timestamp
from mooring.base.errors import ApiError, Fault, OperatorMistake
from mooring.client import ApiClient, ExecPlugin, Impersonation, execplugin

V1 = "client.authentication.k8s.io/v1"


@pytest.fixture
def sends(server, clock):
    """Send one request with these credentials, and return its headers."""

    async def send(client_or_settings: Any) -> dict[str, str]:
        server.lists.append({})
        if isinstance(client_or_settings, ApiClient):
            await client_or_settings.server_version()
        else:
            async with ApiClient(server.connection(**client_or_settings), clock=clock) as client:
                await client.server_version()
        headers: dict[str, str] = server.headers[-1]
        return headers

    return send


@pytest.fixture
def plugin(tmp_path):
    """A credential plugin that counts its calls, records its input, and runs the given Python."""

    def write(code: str, **settings: Any) -> ExecPlugin:
        path = tmp_path / "plugin.py"
        path.write_text(
            "import json, os, pathlib, sys\n"
            f"here = pathlib.Path({str(tmp_path)!r})\n"
            "calls = int((here / 'calls').read_text()) + 1 if (here / 'calls').exists() else 1\n"
            "(here / 'calls').write_text(str(calls))\n"
            "(here / 'info').write_text(os.environ['KUBERNETES_EXEC_INFO'])\n"
            "def give(**status):\n"
            f"    print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential', 'status': status}}))\n" + code
        )
        return ExecPlugin(command=sys.executable, args=(str(path),), **{"interactive_mode": "Never"} | settings)

    return write


def calls(tmp_path: Path) -> int:
    return int((tmp_path / "calls").read_text())


class TestFixedOnes:
    async def test_a_name_and_password(self, sends):
        sent = await sends({"username": "ada", "password": "x"})
        assert sent["Authorization"] == "Basic " + base64.b64encode(b"ada:x").decode()

    async def test_impersonation(self, sends):
        sent = await sends({"token": "t", "impersonate": Impersonation("ada", "7", ("ops",), {"a/b": ("1",)})})
        assert sent["Impersonate-User"] == "ada"
        assert sent["Impersonate-Uid"] == "7"
        assert sent["Impersonate-Group"] == "ops"
        assert sent["Impersonate-Extra-a%2Fb"] == "1"

    async def test_nothing_secret_is_sent_without_tls(self, fake, serve):
        async with serve(fake(), None) as plain:
            plain.lists.append({})
            where = plain.connection(server=f"http://127.0.0.1:{plain.port}", token="t", username="ada", password="x")
            async with ApiClient(where) as client:
                await client.server_version()
            assert "Authorization" not in plain.headers[0]


class TestTokenFiles:
    async def test_the_newline_is_not_part_of_the_token(self, sends, tmp_path):
        (tmp_path / "token").write_text("abc\n")
        assert (await sends({"token_file": str(tmp_path / "token")}))["Authorization"] == "Bearer abc"

    async def test_a_rotated_token_is_noticed(self, sends, server, clock, tmp_path):
        (tmp_path / "token").write_text("old")
        async with ApiClient(server.connection(token_file=str(tmp_path / "token")), clock=clock) as client:
            assert (await sends(client))["Authorization"] == "Bearer old"
            (tmp_path / "token").write_text("new")
            clock.advance(11)
            assert (await sends(client))["Authorization"] == "Bearer new"

    async def test_a_refused_token_is_read_again_at_once(self, server, clock, tmp_path):
        (tmp_path / "token").write_text("old")
        async with ApiClient(server.connection(token_file=str(tmp_path / "token")), clock=clock) as client:
            server.lists.append({})
            await client.server_version()
            (tmp_path / "token").write_text("new")
            server.lists += [(401, {"message": "Unauthorized"}), {}]
            await client.server_version()
        assert [sent["Authorization"] for sent in server.headers] == ["Bearer old", "Bearer old", "Bearer new"]

    async def test_a_token_that_stays_refused_is_not_tried_forever(self, server, clock, tmp_path):
        (tmp_path / "token").write_text("bad")
        server.lists += [(401, {"message": "Unauthorized"})] * 3
        async with ApiClient(server.connection(token_file=str(tmp_path / "token")), clock=clock) as client:
            with pytest.raises(ApiError, match="Unauthorized"):
                await client.server_version()
        assert len(server.requests) == 1

    async def test_a_file_that_vanishes_for_a_moment_does_no_harm(self, sends, server, clock, tmp_path):
        (tmp_path / "token").write_text("abc")
        async with ApiClient(server.connection(token_file=str(tmp_path / "token")), clock=clock) as client:
            await sends(client)
            (tmp_path / "token").unlink()
            clock.advance(11)
            assert (await sends(client))["Authorization"] == "Bearer abc"

    async def test_a_token_of_two_lines_is_refused_before_it_is_sent(self, sends, server, tmp_path):
        (tmp_path / "token").write_text("abc\nX-Evil: 1")
        with pytest.raises(Fault, match="characters that no request can carry"):
            await sends({"token_file": str(tmp_path / "token")})
        assert server.requests == []

    async def test_a_file_that_was_never_there_is_named(self, sends):
        with pytest.raises(Fault, match="a test: token file /no/token cannot be read"):
            await sends({"token_file": "/no/token"})


class TestPlugins:
    async def test_its_token_is_used_and_kept(self, sends, server, clock, plugin, tmp_path):
        async with ApiClient(server.connection(exec=plugin("give(token=f'token-{calls}')")), clock=clock) as client:
            assert (await sends(client))["Authorization"] == "Bearer token-1"
            clock.advance(100_000)
            assert (await sends(client))["Authorization"] == "Bearer token-1"
        assert calls(tmp_path) == 1

    async def test_it_runs_again_when_the_token_expires(self, sends, server, clock, plugin):
        expiry = timestamp(clock.now() + 60)
        code = f"give(token=f'token-{{calls}}', expirationTimestamp={expiry!r} if calls == 1 else None)"
        async with ApiClient(server.connection(exec=plugin(code)), clock=clock) as client:
            assert (await sends(client))["Authorization"] == "Bearer token-1"
            clock.advance(59)
            assert (await sends(client))["Authorization"] == "Bearer token-1"
            clock.advance(2)
            assert (await sends(client))["Authorization"] == "Bearer token-2"

    async def test_it_runs_again_when_the_token_is_rejected(self, server, clock, plugin):
        server.lists += [(401, {}), {}]
        async with ApiClient(server.connection(exec=plugin("give(token=f'token-{calls}')")), clock=clock) as client:
            await client.server_version()
        assert [sent["Authorization"] for sent in server.headers] == ["Bearer token-1", "Bearer token-2"]

    async def test_a_token_given_plainly_needs_no_plugin(self, sends, plugin, tmp_path):
        sent = await sends({"token": "plain", "exec": plugin("give(token='x')")})
        assert sent["Authorization"] == "Bearer plain"
        assert not (tmp_path / "calls").exists()

    async def test_its_certificate_is_shown_to_the_server(self, fake, serve, authority, tmp_path, plugin, clock):
        demanding = fake()
        demanding.lists.append({"ok": True})
        pair = {"clientCertificateData": authority.client.decode(), "clientKeyData": authority.client_key.decode()}
        async with (
            serve(demanding, authority.server_context(tmp_path, wants_client_certificate=True)),
            ApiClient(demanding.connection(exec=plugin(f"give(**{pair!r})")), clock=clock) as client,
        ):
            assert await client.server_version() == {"ok": True}

    async def test_it_sees_its_variables_and_ours(self, sends, plugin, monkeypatch):
        monkeypatch.setenv("OURS", "1")
        code = "give(token=os.environ['OURS'] + os.environ['THEIRS'])"
        assert (await sends({"exec": plugin(code, env={"THEIRS": "2"})}))["Authorization"] == "Bearer 12"

    async def test_it_receives_the_cluster_only_on_request(self, sends, server, plugin, authority, tmp_path):
        await sends({"exec": plugin("give(token='x')")})
        assert json.loads((tmp_path / "info").read_text()) == {
            "apiVersion": V1,
            "kind": "ExecCredential",
            "spec": {"interactive": False},
        }
        wants = plugin("give(token='x')", provide_cluster_info=True, cluster_config={"audience": "y"})
        await sends({"exec": wants, "tls_server_name": "inner.example"})
        assert json.loads((tmp_path / "info").read_text())["spec"]["cluster"] == {
            "server": f"https://127.0.0.1:{server.port}",
            "tls-server-name": "inner.example",
            "certificate-authority-data": base64.b64encode(authority.ca).decode(),
            "config": {"audience": "y"},
        }

    async def test_much_text_on_standard_error_does_not_block(self, sends, plugin):
        code = "sys.stderr.write('x' * 5_000_000); give(token='x')"
        assert (await sends({"exec": plugin(code)}))["Authorization"] == "Bearer x"

    async def test_a_child_that_lives_on_does_not_block(self, sends, plugin, tmp_path):
        code = (
            "import subprocess; child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']);"
            "(here / 'child').write_text(str(child.pid)); give(token='x')"
        )
        try:
            assert (await sends({"exec": plugin(code)}))["Authorization"] == "Bearer x"
        finally:
            os.kill(int((tmp_path / "child").read_text()), 9)


FAILURES: dict[str, tuple[str, dict[str, Any], str]] = {
    "it fails with a reason": (
        "sys.exit('log in first')",
        {},
        r"a test: credential plugin \S+ failed \(exit code 1\): log in first",
    ),
    "it prints something else": ("print('hello')", {}, "did not print an ExecCredential"),
    "it prints another version": (
        "give(token='x')",
        {"api_version": "client.authentication.k8s.io/v1beta1"},
        f"printed {V1} ExecCredential where client.authentication.k8s.io/v1beta1 ExecCredential was requested",
    ),
    "it gives nothing": ("give()", {}, "neither a token nor a client certificate"),
    "it gives half a certificate": ("give(clientCertificateData='x')", {}, "a client certificate without its key"),
    "it gives a time that is none": ("give(token='x', expirationTimestamp='soon')", {}, "expirationTimestamp"),
}


@pytest.mark.parametrize(("code", "settings", "message"), FAILURES.values(), ids=FAILURES.keys())
async def test_a_plugin_that_fails_is_named(sends, plugin, code, settings, message):
    with pytest.raises(Fault, match=message):
        await sends({"exec": plugin(code, **settings)})


async def test_a_plugin_that_is_not_installed_gives_its_hint(sends):
    missing = ExecPlugin(command="no-such-plugin", install_hint="Get it from example.com.")
    with pytest.raises(OperatorMistake, match=r"no-such-plugin cannot be started: No such file.*\nGet it from example"):
        await sends({"exec": missing})


async def test_a_plugin_that_must_prompt_needs_a_terminal(sends, plugin, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OperatorMistake, match="needs a terminal"):
        await sends({"exec": plugin("give(token='x')", interactive_mode="Always")})


async def test_a_plugin_is_ended_when_its_request_is_cancelled(server, clock, plugin, tmp_path):
    os.mkfifo(tmp_path / "started")
    code = "(here / 'started').write_text(str(os.getpid())); import time; time.sleep(600)"
    async with ApiClient(server.connection(exec=plugin(code)), clock=clock) as client:
        waiting = asyncio.create_task(client.server_version())
        pid = int(await asyncio.to_thread((tmp_path / "started").read_text))
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_plugin_that_never_ends_is_ended(sends, plugin, monkeypatch):
    monkeypatch.setattr(execplugin, "PLUGIN_SECONDS", 0.3)
    with pytest.raises(Fault, match="did not finish within 0 seconds"):
        await sends({"exec": plugin("import time; time.sleep(600)")})
