"""The embedded API server and what clients may send it: bounded CPU time and memory, and never a 500.

Each test runs a server and its clients in a child process of its own.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest
from tests.hostile.bounds import bounded, peak_kib
from tests.hostile.embedded import RawClient, a_server
from tests.hostile.random_requests import JSON, PATCHES, PROTOBUF, YAML, RandomRequests, Request

from mooring.apiserver import EmbeddedApiServer

HERE = "tests.hostile.test_embedded_server"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
THINGS = "/apis/example.com/v1/namespaces/default/things"
JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH = PATCHES
MEGABYTE = "x" * 1_000_000


def post(path: str, body: Any, content_type: str = JSON) -> Request:
    return Request("POST", path, _bytes(body), {"Content-Type": content_type})


def patch(path: str, body: Any, content_type: str = JSON_PATCH) -> Request:
    return Request("PATCH", path, _bytes(body), {"Content-Type": content_type})


def get(path: str, **headers: str) -> Request:
    return Request("GET", path, headers=headers)


def _bytes(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()


def a_map(name: str = "it", **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": data}


def a_pod(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "it"}, "spec": {"containers": [{"name": "a", "image": "b"}], **spec}}


def requesting(cpu: str) -> Request:
    return post(PODS, a_pod(containers=[{"name": "a", "image": "b", "resources": {"requests": {"cpu": cpu}}}]))


def a_definition(spec: Any) -> Request:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "things", "kind": "Thing"}
    definition = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
    return post(DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": definition})


def a_thing(**spec: Any) -> Request:
    return post(THINGS, {"metadata": {"name": "it"}, "spec": spec})


def a_list_of(items: dict[str, Any], **more: Any) -> Request:
    return a_definition({"type": "object", "properties": {"l": {"type": "array", "items": items, **more}}})


def message(number: int, content: bytes) -> bytes:
    """A field of a protobuf message."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    written = b""
    while value > 127:
        written += bytes([value & 127 | 128])
        value >>= 7
    return written + bytes([value])


CONTAINERS = [{"name": f"c{number}", "image": "x"} for number in range(10_000)]
NOTHING = b"k8s\x00" + message(1, b"\n\x02v1\x12\x03Pod") + message(2, message(2, message(2, b"") * 900_000))
LAUGHS = b"a: &a [1,1,1,1,1,1,1,1,1]\n" + b"".join(
    b"%c: &%c [%s]\n" % (letter + 1, letter + 1, b",".join([b"*%c" % letter] * 9)) for letter in range(97, 110)
)

# Requests, and the code of the last response. Each may use one second of CPU time, wherever it stands.
ATTACKS: dict[str, tuple[Callable[[], list[Request]], int]] = {
    "a copy that doubles itself": (
        lambda: [
            post(MAPS, a_map(a="b" * 10)),
            patch(f"{MAPS}/it", [{"op": "copy", "from": "/data", "path": f"/data/{at}"} for at in range(22)]),
        ],
        422,
    ),
    "more operations than kube-apiserver allows": (
        lambda: [post(MAPS, a_map()), patch(f"{MAPS}/it", [{"op": "test", "path": "/data", "value": None}] * 10_001)],
        413,
    ),
    "insertions at the head of a long list": (
        lambda: [
            post(MAPS, a_map()),
            patch(
                f"{MAPS}/it",
                [{"op": "add", "path": "/l", "value": [0] * 700_000}]
                + [{"op": "add", "path": "/l/0", "value": 0}] * 9000,
            ),
        ],
        422,
    ),
    "a path deeper than the stack": (
        lambda: [
            post(MAPS, a_map()),
            patch(f"{MAPS}/it", [{"op": "add", "path": "/a" * depth, "value": {}} for depth in range(1, 1200)]),
        ],
        400,
    ),
    "a strategic patch of many items in an order": (
        lambda: [
            post(PODS, a_pod(containers=CONTAINERS)),
            patch(
                f"{PODS}/it",
                {"spec": {"$setElementOrder/containers": CONTAINERS, "containers": CONTAINERS}},
                STRATEGIC_PATCH,
            ),
        ],
        200,
    ),
    "an object that patches make larger": (
        lambda: [
            post(MAPS, a_map(a=MEGABYTE)),
            patch(f"{MAPS}/it", {"data": {"b": MEGABYTE}}, MERGE_PATCH),
        ],
        413,
    ),
    "a million empty containers": (
        lambda: [post(PODS, b'{"spec":{"containers":[' + b"{}," * 1_000_000 + b"{}]}}")],
        400,
    ),
    "a million empty containers in protobuf": (lambda: [post(PODS, NOTHING, PROTOBUF)], 400),
    "two hundred thousand wrong labels": (
        lambda: [post(MAPS, {"metadata": {"name": "it", "labels": {f"l {at}": "v v" for at in range(100_000)}}})],
        422,
    ),
    "containers of one name": (lambda: [post(PODS, a_pod(containers=[{"name": "c", "image": "x"}] * 30_000))], 422),
    "unknown fields": (lambda: [post(MAPS, {**a_map(), **{f"u{at}\r\n": 1 for at in range(150_000)}})], 201),
    "a quantity with an endless exponent": (lambda: [requesting("1e99999999")], 201),
    "a quantity with another endless exponent": (lambda: [requesting("1E+99999")], 201),
    "a quantity finer than any": (lambda: [requesting("1e-99999999")], 201),
    "a quantity of a million digits": (lambda: [requesting("1" * 1_000_000)], 400),
    "an exponent of many digits": (lambda: [requesting("1e" + "9" * 500)], 400),
    "a limit below zero": (lambda: [get(f"{MAPS}?limit=-1")], 200),
    "a selector of parentheses": (lambda: [get(f"{MAPS}?labelSelector={quote('(' * 20_000)}")], 400),
    "a selector of many values": (
        lambda: [get(f"{MAPS}?labelSelector={quote('a in (' + ','.join(map(str, range(9000))) + ')')}")],
        200,
    ),
    "a selector with spaces before a value": (lambda: [get(f"{MAPS}?labelSelector=a%3D{'+' * 60_000}b+c")], 400),
    "a selector with spaces before a key": (lambda: [get(f"{MAPS}?labelSelector={'+' * 60_000}a+b")], 400),
    "a selector with a number of many digits": (lambda: [get(f"{MAPS}?labelSelector=a%3E{'9' * 60_000}")], 400),
    "a long field selector": (
        lambda: [get(f"{MAPS}?fieldSelector={quote('metadata.name=' + chr(92) * 20_000, safe='')}")],
        200,
    ),
    "a URL that is too long": (lambda: [get(f"{MAPS}?x={'a' * 100_000}")], 400),
    "a path of many parts": (lambda: [get("/" + "a/" * 30_000)], 404),
    "an Accept of many parts": (lambda: [get(MAPS, Accept="application/json;as=x," * 300)], 200),
    "a name of a megabyte": (lambda: [post(MAPS, a_map(MEGABYTE))], 422),
    "aliases that multiply": (lambda: [post(MAPS, LAUGHS, YAML)], 400),
    "a large enumeration for many values": (
        lambda: [
            a_list_of({"type": "string", "enum": [f"e{at}" for at in range(50_000)]}),
            a_thing(l=[f"x{at}" for at in range(50_000)]),
            a_thing(l=["e49999"] * 50_000),
        ],
        422,
    ),
    "a large default for many items": (
        lambda: [
            a_list_of({"type": "object", "properties": {"a": {"type": "string", "default": MEGABYTE[:100_000]}}}),
            a_thing(l=[{}] * 100_000),
        ],
        413,
    ),
    "many alternatives for many items": (
        lambda: [a_list_of({"type": "integer"}, anyOf=[{"items": {"minimum": 5}}] * 5000), a_thing(l=[1] * 300_000)],
        422,
    ),
    "a large set": (
        lambda: [a_list_of({"type": "integer"}, **{"x-kubernetes-list-type": "set"}), a_thing(l=list(range(150_000)))],
        201,
    ),
    "many values below a long key": (
        lambda: [
            a_definition({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}}),
            a_thing(**{MEGABYTE: ["wrong"] * 100_000}),
            a_thing(**{MEGABYTE: [1] * 100_000}),
        ],
        201,
    ),
    "many values below a long key of a built-in kind": (
        lambda: [
            post(
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                {"spec": {"extra": {MEGABYTE: ["x"] * 300_000}}},
            )
        ],
        201,
    ),
    "a schema that refers to itself": (
        lambda: [a_definition({"type": "object", "properties": {"a": {"$ref": "#/properties/spec"}}})],
        422,
    ),
}


def cost_of(name: str) -> list[Any]:
    """The code of the last response, and the CPU seconds of the most expensive request."""

    async def run() -> list[Any]:
        async with a_server() as (_, client):
            responses = [await client.send(request) for request in ATTACKS[name][0]()]
        assert all(response.code < 500 for response in responses), responses[-1].body[:500]
        return [responses[-1].code, max(response.cpu_seconds for response in responses)]

    return asyncio.run(run())


@pytest.mark.parametrize("name", ATTACKS)
def test_a_hostile_request_is_cheap(name: str):
    code, seconds = bounded(f"{HERE}:cost_of", name, cpu_seconds=20, memory_mib=600)
    assert code == ATTACKS[name][1]
    assert seconds < 2.5, "one second, and room for a busy machine"


def failures_of(seed: int, count: int) -> list[str]:
    """What went wrong with so many random requests."""

    async def run() -> list[str]:
        wrong: list[str] = []
        async with a_server() as (server, client):
            assert (await client.send(a_list_of({"type": "string"}))).code == 201
            requests = RandomRequests(seed, server.registry.table)
            for _ in range(count):
                request = requests.next()
                response = await client.send(request)
                is_timeout = response.code == 504  # of a revision that is yet to come, as upstream
                if (response.code >= 500 and not is_timeout) or response.code == 0 or response.cpu_seconds > 2:
                    wrong.append(f"{response.code} {response.cpu_seconds:.1f} s {request} {response.body[:300]!r}")
            assert server._tasks
            assert not any(task.done() for task in server._tasks), "the garbage collector has ended"
        return wrong

    return asyncio.run(run())


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_requests_never_fail(seed: int):
    assert bounded(f"{HERE}:failures_of", seed, 2500, cpu_seconds=60, memory_mib=600) == []


WATCHERS, WRITES, WRITTEN = 250, 60, 500_000


def idle_watches() -> list[Any]:
    """Watches that read nothing while large objects are written: growth in MiB, and how long /readyz took at most."""

    async def run() -> list[Any]:
        async with a_server() as (server, client):
            held = [await _idle_watch(server, client) for _ in range(WATCHERS)]
            await client.send(post(MAPS, a_map()))
            before = _resident_mib()
            slowest = 0.0
            for number in range(WRITES):
                written = patch(f"{MAPS}/it", {"data": {"a": f"{number:06}" + "x" * WRITTEN}}, MERGE_PATCH)
                assert (await client.send(written)).code == 200
                began = time.process_time()
                assert (await client.send(get("/readyz"))).body == b"ok"
                slowest = max(slowest, time.process_time() - began)
            grown = _resident_mib() - before
            watches = server.registry.store.collection("configmaps").watches
            behind = sum(watch.behind > 0 for watch in watches)
            for _, writer in held:
                writer.transport.abort()
            return [grown, slowest, behind]

    return asyncio.run(run())


async def _idle_watch(
    server: EmbeddedApiServer, client: RawClient
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=server.ca_pem)
    # With a tiny limit the reader stops reading at once.
    reader, writer = await asyncio.open_connection(server.host, server.port, ssl=context, limit=1)
    writer.write(client.head(get(f"{MAPS}?watch=1")))
    await reader.readexactly(1)
    return reader, writer


def _resident_mib() -> int:
    return peak_kib() // 1024


def test_watches_that_do_not_read_cost_little():
    grown, slowest, behind = bounded(f"{HERE}:idle_watches", cpu_seconds=60, memory_mib=900)
    assert behind > 0, "they fell behind"
    assert grown < 500, "one copy of half a megabyte for each watcher and write would be 7 GiB"
    assert slowest < 1


def slow_yaml() -> list[Any]:
    """How many /readyz were served while three megabytes of YAML were parsed."""

    async def run() -> list[Any]:
        async with a_server() as (server, client):
            posting = asyncio.create_task(client.send(post(MAPS, b"a: [" + b"1," * 300_000 + b"]", YAML)))
            other, served = RawClient(server), 0
            while not posting.done():
                await other.send(get("/readyz"))
                served += 1
            return [(await posting).code, served]

    return asyncio.run(run())


def test_other_requests_are_served_while_long_yaml_is_parsed():
    code, served = bounded(f"{HERE}:slow_yaml", cpu_seconds=60, memory_mib=900)
    assert 400 <= code < 500
    assert served > 5


def unauthenticated_connections(count: int) -> list[Any]:
    """Connections that never send the token, and whether a client with the token is served meanwhile."""

    async def run() -> list[Any]:
        async with a_server() as (server, client):
            held = []
            for _ in range(count):
                _, writer = await client.connect()
                writer.write(b"GET /api HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 5000)
                held.append(writer)
            code = (await client.send(get(MAPS))).code
            assert server._runner is not None
            kept = len(server._runner.server.connections) if server._runner.server else 0
            for writer in held:
                writer.transport.abort()
            return [code, kept]

    return asyncio.run(run())


def test_connections_without_the_token_are_shed():
    code, kept = bounded(f"{HERE}:unauthenticated_connections", 400, cpu_seconds=60, memory_mib=900)
    assert code == 200
    assert kept < 350
