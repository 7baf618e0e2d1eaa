"""Clients without credentials on the serving port: what they can cost in time, memory, descriptors, log and reviews."""

from __future__ import annotations

import os
import select
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.hostile.bounds import WALL_SECONDS
from tests.hostile.serving_process import Served, rest_of, served, status_of

HALF = b"GET /livez HTTP/1.1\r\nHost: here\r\n"
WHOLE = HALF + b"\r\n"
FEW_LINES = 25
"""Ten of a message each minute, on a machine that may be slow."""
MANY: dict[str, Any] = {"connections": 5_000, "connections_of_a_client": 5_000, "burst_of_handshakes": 5_000}


@pytest.fixture(scope="module")
def roomy() -> Iterator[Served]:
    """One server for tests that do not read its log or change its limits."""
    with served(**MANY) as server:
        yield server


@pytest.fixture(scope="module")
def with_cluster() -> Iterator[Served]:
    with served(cluster=True, verbosity=3, **MANY) as server:
        yield server


def eventually(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WALL_SECONDS
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.01)


def get(connection: socket.socket, request: bytes = WHOLE) -> int:
    """The status of a short response, on a connection that is kept."""
    connection.sendall(request)
    return status_of(connection.recv(65_536))


def is_closed_while_sending(connection: socket.socket, piece: bytes, *, seconds_between: float = 0) -> bool:
    """Send the same again and again; False: the server takes it for ever."""
    try:
        for _ in range(30_000):
            connection.sendall(piece)
            if select.select([connection], [], [], seconds_between)[0]:
                rest_of(connection)
                return True
    except OSError:
        return True
    return False


def test_a_head_must_be_complete_in_time():
    with served(head_seconds=1) as server:
        silent, half = server.open(), server.open_tls()
        half.sendall(HALF)
        assert rest_of(silent) == rest_of(half) == b""
        assert 'waitedFor="head"' in server.log


def test_a_head_that_comes_byte_by_byte_is_not_waited_for():
    with served(head_seconds=1) as server, server.open_tls() as slow:
        slow.sendall(HALF)
        assert is_closed_while_sending(slow, b"x", seconds_between=0.01)


def test_an_idle_connection_is_closed():
    with served(idle_seconds=1) as server, server.open_tls() as idle:
        assert [get(idle), get(idle)] == [200, 200]
        assert rest_of(idle) == b""


@pytest.mark.parametrize("started", [HALF, b"PUT /livez HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n1"])
def test_a_later_request_must_be_complete_in_time(started):
    with served(request_seconds=1) as server, server.open_tls() as kept:
        assert get(kept) == 200
        kept.sendall(started)
        rest_of(kept)


def test_a_client_that_does_not_read_is_not_waited_for():
    with served(request_seconds=1) as server, server.open_tls() as slow:
        slow.sendall(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
        eventually(lambda: 'waitedFor="sending"' in server.log)
        assert len(rest_of(slow)) < 2**23


def test_a_client_that_reads_gets_all_of_a_large_response(roomy):
    response = roomy.send(b"GET /large HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
    assert len(response) > 2**23


def test_one_client_holds_a_bounded_number_of_connections_and_a_probe_of_the_same_address_gets_in():
    with served(connections_of_a_client=20, burst_of_handshakes=5_000) as server:
        held = []
        for _ in range(60):
            held.append(server.open_tls())
            held[-1].sendall(HALF)
            assert server.get("/livez") == 200
        for shed in held[:40]:
            assert rest_of(shed) == b""
        held[-1].sendall(b"\r\n")
        assert status_of(held[-1].recv(65_536)) == 200


def test_connections_without_a_byte_do_not_keep_a_probe_out():
    with served(handshakes_per_second=0.001, burst_of_handshakes=2) as server:
        for _ in range(300):
            server.open()
        assert [server.get("/livez"), server.get("/livez")] == [200, 200]


def test_kept_and_served_connections_are_shed_last():
    with served(connections_of_a_client=4, burst_of_handshakes=5_000) as server:
        kept = server.open_tls()
        assert get(kept) == 200
        for _ in range(20):
            server.open_tls().sendall(HALF)
        assert get(kept) == 200


def test_half_requests_cost_little_memory_each():
    """kube-scheduler: 39 KiB each."""
    with served(**MANY) as server:
        assert server.get("/livez") == 200
        before = server.rss_kib
        held = []
        for _ in range(400):
            held.append(server.open_tls())
            held[-1].sendall(HALF)
        assert server.get("/livez") == 200
        assert (server.rss_kib - before) / len(held) < 39


def test_memory_is_bounded_and_given_back():
    head = HALF + b"".join(b"X-%d: %s\r\n" % (at, b"x" * 7_000) for at in range(9))
    with served(burst_of_handshakes=5_000, trim_seconds=0.5) as server:
        assert server.get("/livez") == 200
        before = server.rss_kib
        held = []
        for _ in range(300):
            held.append(server.open_tls())
            held[-1].sendall(head)
        assert server.get("/livez") == 200
        assert server.rss_kib - before < 32 * 1024
        for each in held:
            each.close()
        eventually(lambda: server.rss_kib - before < 8 * 1024)


@pytest.mark.parametrize(("lines", "length"), [(8, 60_000), (1, 70_000), (2_000, 40)])
def test_a_head_has_a_bounded_size(roomy, lines, length):
    head = HALF + b"".join(b"X-%d: %s\r\n" % (at, b"x" * length) for at in range(lines))
    assert status_of(roomy.send(head + b"\r\n")) == 431


def test_a_long_head_within_the_bound_is_read(roomy):
    assert roomy.get("/livez", "X-Long: " + "x" * 60_000) == 200


def test_a_later_request_has_a_bounded_size(roomy):
    with roomy.open_tls() as kept:
        assert get(kept) == 200
        assert is_closed_while_sending(kept, b"X-Long: " + b"x" * 8_000 + b"\r\n")


def test_a_body_has_a_bounded_size(roomy):
    with roomy.open_tls() as kept:
        kept.sendall(b"PUT /livez HTTP/1.1\r\nHost: here\r\nContent-Length: 99999999\r\n\r\n")
        assert is_closed_while_sending(kept, b"x" * 8_000)


def test_without_descriptors_probes_are_served_and_the_log_stays_short():
    with served(descriptors=120) as server, server.open_tls() as kept:
        assert get(kept) == 200
        assert server.do("fill descriptors") > 10
        begun = server.cpu_seconds
        held: list[socket.socket] = []
        for _ in range(60):
            held.append(server.open())
            held[-1].sendall(b"\x16\x03\x01")
            assert server.get("/livez") == 200
        assert get(kept) == 200
        assert server.cpu_seconds - begun < 5
        assert 1 <= server.log.count("Too few file descriptors") <= 5
        assert "Traceback" not in server.log
        assert len(server.log.splitlines()) < 3 * FEW_LINES
        server.do("free descriptors")
        assert server.get("/livez") == 200


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff invalid",
        b"GET /livez HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 520,
    ],
    ids=["junk", "HTTP without TLS", "a broken ClientHello"],
)
def test_failed_handshakes_make_few_lines(sent):
    with served(**MANY) as server:
        for _ in range(200):
            with server.open() as connection:
                connection.sendall(sent)
                rest_of(connection)
        assert server.get("/livez") == 200
        assert 1 <= server.log.count("TLS handshake failed") <= FEW_LINES
        assert len(server.log.splitlines()) < 2 * FEW_LINES


def test_what_is_no_http_makes_few_lines():
    with served(**MANY) as server:
        for _ in range(50):
            assert status_of(server.send(b"GET metrics HTTP/1.1\r\n\r\n")) == 400
        assert 1 <= server.log.count("Malformed HTTP request") <= FEW_LINES
        assert len(server.log.splitlines()) < 2 * FEW_LINES


def test_handshakes_of_a_client_have_a_rate():
    with served(burst_of_handshakes=50, handshakes_per_second=0.001) as server:
        statuses: Counter[int] = Counter()
        for _ in range(80):
            try:
                statuses[server.get("/livez")] += 1
            except OSError:
                statuses[0] += 1
        assert statuses == {200: 50, 0: 30}
        assert 1 <= server.log.count("too many TLS handshakes a second") <= FEW_LINES


def test_requests_of_a_client_have_a_rate():
    options = {"burst_of_requests": 20, "requests_per_second": 0.001}
    with served(options=options) as server, server.open_tls() as kept:
        assert [get(kept) for _ in range(21)] == [200] * 20 + [429]
        assert rest_of(kept) == b""
        assert server.get("/livez") == 429


BAD_BYTES = {
    "a token": b"GET /metrics HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer \xff\r\nConnection: close\r\n\r\n",
    "a path": b"GET /metrics\xff HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n",
    "an encoded path": b"GET /metrics%ff%ed%a0%80 HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n",
    "a user agent": b"GET /metrics HTTP/1.1\r\nHost: here\r\nUser-Agent: \xff\r\nConnection: close\r\n\r\n",
    "an accept header": b"GET /metrics HTTP/1.1\r\nHost: here\r\nAccept: \xff\r\nConnection: close\r\n\r\n",
}
REFUSED = {"a token": {401}, "a path": {400, 403}}


@pytest.mark.parametrize(("what", "request_bytes"), BAD_BYTES.items(), ids=BAD_BYTES.keys())
def test_bytes_that_are_no_text_are_refused_without_an_error_line(with_cluster, what, request_bytes):
    assert status_of(with_cluster.send(request_bytes)) in REFUSED.get(what, {403})
    assert not [line for line in with_cluster.log.splitlines() if line.startswith("E")]


def test_unknown_tokens_cause_a_bounded_number_of_reviews_and_known_ones_are_served():
    with served(cluster=True, **MANY) as server:
        known = f"Authorization: Bearer {server.do('token')}"
        assert server.get("/metrics", known) == 200
        begun = time.monotonic()
        statuses = Counter(server.get("/metrics", f"Authorization: Bearer {os.urandom(8).hex()}") for _ in range(150))
        paths = Counter(server.get(f"/{os.urandom(8).hex()}") for _ in range(50))
        most = 20 + 5 * (time.monotonic() - begun) + 1
        assert set(statuses) <= {401, 429}
        assert set(paths) <= {403, 429}
        assert statuses[401] + paths[403] <= most
        assert server.get("/metrics", known) == 200
        assert len(server.log.splitlines()) < 3 * FEW_LINES


def test_a_log_of_requests_holds_no_query():
    with served(verbosity=3, **MANY) as server:
        server.get("/metrics?access_token=QUERYSECRET")
        assert 'URI="/metrics"' in server.log
        assert "QUERYSECRET" not in server.log


def test_long_paths_make_short_lines():
    with served(verbosity=3, **MANY) as server:
        for _ in range(20):
            server.get("/" + "x" * 8_000, "User-Agent: " + "y" * 50_000)
        assert len(server.log) < 40_000
