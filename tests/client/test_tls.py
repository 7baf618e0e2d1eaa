"""Trusted authorities and client certificates, given inline or in files."""

from __future__ import annotations

import asyncio
import socket

import pytest
from tests.client.conftest import until

from mooring.base.errors import OperatorMistake, Unreachable
from mooring.client import ApiClient, Connection, Reflector
from mooring.objects import Pod


async def responds(connection: Connection) -> bool:
    async with ApiClient(connection) as client:
        return await client.server_version() == {"ok": True}


@pytest.fixture(autouse=True)
def ready(server):
    server.lists.append({"ok": True})


async def test_the_servers_certificate_is_checked_by_default(server):
    with pytest.raises(Unreachable, match="its certificate is not trusted"):
        await responds(server.connection(ca_data=None))


async def test_the_check_can_be_turned_off(server):
    assert await responds(server.connection(ca_data=None, insecure_skip_tls_verify=True))


async def test_the_authority_may_be_in_a_file(server, authority, tmp_path):
    (tmp_path / "ca.crt").write_bytes(authority.ca)
    assert await responds(server.connection(ca_data=None, ca_file=str(tmp_path / "ca.crt")))


async def test_the_certificate_must_be_for_the_name_we_use(server):
    with pytest.raises(Unreachable, match="not trusted"):
        await responds(server.connection(tls_server_name="other.example"))


async def test_the_name_to_check_can_be_given(server):
    assert await responds(server.connection(tls_server_name="inner.example"))


async def test_plain_http_on_an_https_address_is_explained(fake, serve):
    async with serve(fake(), None) as plain:
        with pytest.raises(Unreachable, match=f"127.0.0.1:{plain.port}.*TLS handshake failed"):
            await responds(plain.connection())


@pytest.mark.parametrize("given", ["inline", "in files"])
async def test_we_show_our_certificate(fake, serve, authority, tmp_path, given):
    demanding = fake()
    demanding.lists.append({"ok": True})
    async with serve(demanding, authority.server_context(tmp_path, wants_client_certificate=True)):
        if given == "inline":
            identity = {"client_cert_data": authority.client, "client_key_data": authority.client_key}
        else:
            (tmp_path / "crt").write_bytes(authority.client)
            (tmp_path / "key").write_bytes(authority.client_key)
            identity = {"client_cert_file": str(tmp_path / "crt"), "client_key_file": str(tmp_path / "key")}
        assert await responds(demanding.connection(**identity))


async def test_a_renewed_certificate_is_taken_from_its_files(fake, serve, authority, tmp_path, clock):
    demanding = fake()
    demanding.lists += [{"ok": True}] * 3
    crt, key = tmp_path / "crt", tmp_path / "key"
    for path, content in ((crt, authority.server), (key, authority.server_key)):
        path.write_bytes(content)
    identity = {"client_cert_file": str(crt), "client_key_file": str(key)}
    async with (
        serve(demanding, authority.server_context(tmp_path, wants_client_certificate=True)),
        ApiClient(demanding.connection(**identity), clock=clock) as client,
    ):
        await client.server_version()
        crt.write_bytes(authority.client + b"\n")  # and not its key yet
        clock.advance(11)
        await client.server_version()
        key.write_bytes(authority.client_key + b"\n")
        clock.advance(11)
        await client.server_version()
    assert demanding.shown == ["server", "server", "client"]


async def test_when_the_cluster_gets_a_new_authority_the_watch_goes_on(
    fake, serve, authority, next_authority, tmp_path, clock, feed
):
    """The server is restarted with a certificate of the new authority, and the CA file is replaced."""
    trusted, first = tmp_path / "ca.crt", socket.create_server(("127.0.0.1", 0))
    address = first.getsockname()
    trusted.write_bytes(authority.ca)
    before, after = fake(), fake()
    where = before.connection(server=f"https://127.0.0.1:{address[1]}", ca_data=None, ca_file=str(trusted))
    async with ApiClient(where, clock=clock) as client:
        reflector = Reflector(client, Pod, feed)
        running = asyncio.create_task(reflector.run())
        before.lists.append({"metadata": {"resourceVersion": "5"}, "items": []})
        async with serve(before, authority.server_context(tmp_path), sock=first):
            await feed.receives(("listed", []))
            await before.held.wait()
        after.watches.append((410, {"code": 410, "reason": "Expired"}))
        after.lists.append({"metadata": {"resourceVersion": "6"}, "items": [{"metadata": {"name": "new"}}]})
        with socket.create_server(address) as again:
            async with serve(after, next_authority.server_context(tmp_path), sock=again):
                await until(lambda: "not trusted" in (reflector.problem or ""))
                trusted.write_bytes(next_authority.ca)
                await feed.receives(("listed", ["new"]))
                assert reflector.problem is None
                running.cancel()


async def test_a_proxy_carries_the_connection_and_sees_none_of_it(server):
    received: list[bytes] = []

    async def proxy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readuntil(b"\r\n\r\n"))
        onward, back = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(pass_on(reader, back), pass_on(onward, writer))

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    async with await asyncio.start_server(proxy, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        assert await responds(server.connection(proxy_url=f"http://127.0.0.1:{port}", token="t0p"))
    (request,) = received
    assert request.startswith(f"CONNECT 127.0.0.1:{server.port} ".encode())
    assert b"t0p" not in request


async def test_a_proxy_that_is_away_is_named_without_its_password(server, reserved):
    port = reserved.getsockname()[1]
    with pytest.raises(Unreachable) as failure:
        await responds(server.connection(proxy_url=f"http://ada:s3cret@127.0.0.1:{port}"))
    assert f"through the proxy 127.0.0.1:{port} (from a test): connection refused" in str(failure.value)
    assert "s3cret" not in str(failure.value)


async def test_an_ipv6_server_is_reached(fake, serve, authority, tmp_path, has_ipv6):
    there = fake()
    there.lists.append({"ok": True})
    async with serve(there, authority.server_context(tmp_path), host="::1"):
        assert await responds(there.connection(server=f"https://[::1]:{there.port}"))


MISTAKES = {
    "a CA that is none": ({"ca_data": b"hello"}, "certificate-authority-data holds no certificate in PEM"),
    "an empty CA would mean the system's CAs": ({"ca_data": b"\n"}, "is empty"),
    "a CA file that is gone": (
        {"ca_data": None, "ca_file": "/nowhere/ca.crt"},
        "/nowhere/ca.crt cannot be read: No such",
    ),
    "a certificate that is none": (
        {"client_cert_data": b"hello", "client_key_data": b"world"},
        "client-certificate-data holds no certificate in PEM",
    ),
}


@pytest.mark.parametrize(("wrong", "message"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_unusable_certificates_are_the_operators_mistake(server, wrong, message):
    with pytest.raises(OperatorMistake, match=message) as mistake:
        await responds(server.connection(**wrong))
    assert str(mistake.value).startswith("a test: ")


def test_secrets_are_not_shown(authority):
    shown = repr(
        Connection(server="https://x", source="s", token="t0p", password="s3cret", client_key_data=b"k3y", username="u")
    )
    assert not any(secret in shown for secret in ("t0p", "s3cret", "k3y"))
