"""Deeply nested and self-repeating YAML and JSON: refused in a sentence, or read without what lies too deep.

What could end the process runs in a child.
"""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.cli.programs import Program, private_home
from tests.client.conftest import FakeServer, RememberingFeed, Watch, authority, client, clock, server  # noqa: F401
from tests.hostile.bounds import bounded

from mooring.base import log
from mooring.base.documents import MOST_REPEATED, read_tree, read_trees, written
from mooring.base.errors import Fault, OperatorMistake
from mooring.base.nesting import MOST_NESTED, Decoder, TooDeep, cut_deep, decode, refuse_deep
from mooring.client import ApiClient, Connection, Reflector
from mooring.client.connection import ExecPlugin
from mooring.client.execplugin import run_plugin
from mooring.framework.services import HttpResponse
from mooring.objects import CustomResource
from mooring.scheduler.extenders import wire

HERE = "tests.hostile.test_documents"
CPU_SECONDS = 20

SHAPES = {
    "brackets": ("[", "]"),
    "braces": ("{a: ", "}"),
    "single pairs": ("[a: ", "]"),
    "JSON objects": ('{"a":', "}"),
    "brackets that do not end": ("[", ""),
    "lists in one line": ("- ", ""),
    "keys in one line": ("? ", ""),
}


def problem_of(before: str, after: str, times: int) -> str:
    """In a child: what is wrong with this file."""
    text = "a: 1\nb: " + before * times + after * times if before in "[{" else before * times + "1" + after * times
    try:
        read_trees(text, "deep.yaml")
    except OperatorMistake as mistake:
        return str(mistake)
    return "nothing"


@pytest.mark.parametrize("times", [30_000, 50_000])
@pytest.mark.parametrize("shape", SHAPES)
def test_nested_yaml_is_refused_with_file_line_and_limit(shape: str, times: int):
    found = bounded(f"{HERE}:problem_of", *SHAPES[shape], times, cpu_seconds=CPU_SECONDS, memory_mib=300)
    assert found.startswith("deep.yaml cannot be read.")
    assert f"deep.yaml (line {2 if shape.startswith('brackets') else 1})" in found
    assert f"nested more than {MOST_NESTED} levels deep" in found


def test_the_limit_is_exact():
    assert read_tree("[" * MOST_NESTED + "]" * MOST_NESTED, "f").items
    with pytest.raises(OperatorMistake, match="levels deep"):
        read_tree("[" * (MOST_NESTED + 1) + "]" * (MOST_NESTED + 1), "f")


def test_what_is_as_deep_as_allowed_can_be_walked_and_written():
    deep: Any = read_tree("{a: [" * (MOST_NESTED // 2) + "]}" * (MOST_NESTED // 2), "f").plain()
    assert read_tree(written(deep), "f").plain() == deep


def test_aliases_count_where_they_are_used():
    half = MOST_NESTED // 2
    text = f"a: &a {'[' * half}{']' * half}\nb: &b {'[' * half}*a{']' * half}\n"
    with pytest.raises(OperatorMistake, match=r"f \(line 2\)\n.*levels deep"):
        read_tree(text, "f")


def amount_of_laughs(document: str) -> str:
    try:
        read_trees(document, "f")
    except OperatorMistake as mistake:
        return str(mistake)
    return "nothing"


def aliases_of_aliases(opening: str, repeated: str, closing: str) -> str:
    lines = [f"x0: &x0 {opening}a{closing}" if opening == "[" else "x0: &x0 {k: v}"]
    for level in range(1, 30):
        body = ", ".join(repeated.format(n=n, alias=f"*x{level - 1}") for n in range(9))
        lines.append(f"x{level}: &x{level} {opening}{body}{closing}")
    return "\n".join(lines)


BOMBS = {
    "lists": aliases_of_aliases("[", "{alias}", "]"),
    "mappings": aliases_of_aliases("{", "k{n}: {alias} ", "}"),
    "merges": "x0: &x0 {k: v}\n"
    + "".join(
        f"x{n}: &x{n} {{<<: [{', '.join([f'*x{n - 1}'] * 9)}], l{n}: {{<<: *x{n - 1}}}}}\n" for n in range(1, 40)
    ),
    "one long list, often": f"a: &a [{'1,' * 2000}]\nb: [{'*a,' * (MOST_REPEATED // 1000)}]",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_aliases_that_repeat_too_much_are_refused(bomb: str):
    found = bounded(f"{HERE}:amount_of_laughs", BOMBS[bomb], cpu_seconds=CPU_SECONDS, memory_mib=400)
    assert "an alias repeats too much" in found


def long_key(length: int, items: int) -> int:
    text = "k" * length + ": {" + "l" * length + ": [" + "1," * items + "]}"
    return len(read_tree(text, "f", strict=False).fields["k" * length].fields["l" * length].items)


def test_a_long_key_is_not_copied_into_every_value_below_it():
    # libyaml takes keys of up to 1024 characters without `?`.
    assert bounded(f"{HERE}:long_key", 1000, 300_000, cpu_seconds=60, memory_mib=600) == 300_000


def test_an_explicit_key_of_a_megabyte_is_not_either():
    found = bounded(f"{HERE}:explicit_key", 1_000_000, 100_000, cpu_seconds=60, memory_mib=600)
    assert found == 100_000


def explicit_key(length: int, items: int) -> int:
    key = "k" * length
    return len(read_tree(f"? {key}\n: [{'1,' * items}]", "f").fields[key].items)


def test_a_file_that_is_too_long_is_refused_before_it_is_parsed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mooring.base.documents.MOST_BYTES", 10)
    with pytest.raises(OperatorMistake, match="has 11 bytes; at most 10 are read"):
        read_trees("a: 12345678", "f")


def test_a_file_with_a_problem_in_every_line_lists_a_hundred():
    with pytest.raises(OperatorMistake) as mistake:
        read_tree("a: 1\n" * 5000, "f")
    assert len(mistake.value.problems) == 101
    assert "more problems" in mistake.value.problems[-1].message


def test_a_number_of_ten_thousand_digits_is_text():
    assert read_tree("a: 0x" + "f" * 10_000, "f").plain() == {"a": "0x" + "f" * 10_000}


def deep_json(levels: int) -> bytes:
    return b'{"a":' * levels + b"1" + b"}" * levels


def test_json_is_cut_where_it_gets_too_deep_and_nowhere_else():
    text = b'{"x": {"s": "]]][[{{\\"", "deep": ' + b"[" * 5000 + b"]" * 5000 + b'}, "y": [1, [2]], "z": "}"}'
    found: Any = msgspec.json.decode(cut_deep(text))
    assert (found["y"], found["z"], found["x"]["s"]) == ([1, [2]], "}", ']]][[{{"')
    depth, here = 0, found["x"]["deep"]
    while here is not None:
        depth, here = depth + 1, here[0]
    assert depth == MOST_NESTED - 2
    assert cut_deep(b'{"a": [1, {"b": null}]}') == b'{"a": [1, {"b": null}]}'


@pytest.mark.parametrize("levels", [MOST_NESTED + 1, 5_000, 100_000])
def test_deep_json_is_refused_where_it_would_be_kept(levels: int):
    refuse_deep(deep_json(MOST_NESTED))
    with pytest.raises(TooDeep):
        refuse_deep(deep_json(levels))
    refuse_deep(b'{"text": "' + b"[" * levels + b'"}')


def scan(document: str) -> int:
    refuse_deep(document.encode())
    return len(cut_deep(document.encode()))


def test_text_without_an_end_is_passed_over_once():
    document = '"' + '\\"[' * 700_000
    assert bounded(f"{HERE}:scan", document, cpu_seconds=CPU_SECONDS) == len(document)


def test_the_response_of_a_service_that_is_too_deep_is_one_that_cannot_be_read():
    for read in (decode, lambda raw: HttpResponse(200, raw).json()):
        with pytest.raises((msgspec.DecodeError, Fault), match="levels deep"):
            read(deep_json(100_000))
        with pytest.raises((msgspec.DecodeError, Fault), match="UTF-8"):
            read(b'"\xff"')
    deep = b'{"x":' + deep_json(100_000) + b"}"
    for read_response in (wire.read_filter, wire.read_priorities, wire.read_victims, wire.read_binding):
        with pytest.raises(wire.MalformedResponse, match="levels deep"):
            read_response(deep if read_response is not wire.read_priorities else b"[" + deep)


async def test_a_credential_plugin_that_prints_deep_json_fails_in_a_sentence(tmp_path: Path):
    (tmp_path / "out").write_bytes(deep_json(100_000))
    plugin = ExecPlugin(command="cat", args=(str(tmp_path / "out"),), api_version="client.authentication.k8s.io/v1")
    with pytest.raises(Fault, match=r"cat did not print an ExecCredential: .* levels deep"):
        await run_plugin(plugin, Connection(server="https://127.0.0.1:1", source="a test"))


class Note(CustomResource, group="example.com", version="v1", plural="notes", scope="Cluster", kw_only=True):
    spec: dict[str, Any]


def note(name: str, version: int, deep: bytes = b"1") -> bytes:
    return b'{"metadata":{"name":"%s","resourceVersion":"%d"},"spec":{"depth":%s}}' % (name.encode(), version, deep)


@pytest.fixture
def feed() -> RememberingFeed:
    return RememberingFeed()


@pytest.mark.parametrize("levels", [990, 1_000, 9_900, 100_000])
async def test_an_object_that_is_too_deep_holds_up_neither_list_nor_watch(
    client: ApiClient,  # noqa: F811
    server: FakeServer,  # noqa: F811
    feed: RememberingFeed,
    levels: int,
):
    """kube-apiserver stores custom resources of nearly 10,000 levels."""
    deep = deep_json(levels)
    page = b'{"metadata":{"resourceVersion":"10"},"items":[%s,%s]}' % (note("a", 1), note("deep", 2, deep))
    lines = [("ADDED", note("deeper", 11, deep)), ("ADDED", note("b", 12)), ("DELETED", note("deep", 13, deep))]
    chunks = [b'{"type":"%s","object":%s}\n' % (kind.encode(), raw) for kind, raw in lines]
    server.watches.append(Watch([*chunks, b'{"type":"ADDED","object":"\xff"}\n']))
    server.lists.append(msgspec.Raw(page))
    server.plain = lambda response: _raw(response)  # type: ignore[method-assign]
    log.configure(stream=io.StringIO())
    running = asyncio.create_task(Reflector(client, Note, feed).run())
    try:
        await feed.receives(("listed", ["a", "deep"]), ("changed", "deeper"), ("changed", "b"), ("deleted", "deep"))
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        log._settings.stream = None


def _raw(response: Any) -> Any:
    from aiohttp import web

    if isinstance(response, msgspec.Raw):
        return web.Response(body=bytes(response), content_type="application/json")
    return FakeServer.plain(response)


def test_a_decoder_reads_what_a_type_has_around_deep_fields():
    class Small(msgspec.Struct):
        name: str

    assert Decoder(Small).decode(b'{"deep":' + deep_json(100_000) + b',"name":"x"}').name == "x"


GOOD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
NESTED = "a: " + "[" * 30_000


def test_config_check_refuses_a_nested_file():
    with private_home() as home:
        (home / "nested.yaml").write_text(NESTED)
        with Program("config", "check", "nested.yaml", home=home) as check:
            assert check.ended() == 2
            assert "nested.yaml (line 1)" in check.written()
            assert f"nested more than {MOST_NESTED} levels deep" in check.written()


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--config=nested.yaml"),
        ("run", "--kubeconfig=nested.yaml"),
        ("explain", "web", "--kubeconfig=nested.yaml"),
        ("up", "--cluster=nested.yaml"),
        ("manifests", "--config=nested.yaml"),
    ],
    ids=lambda arguments: " ".join(arguments),
)
def test_every_command_refuses_a_nested_file(arguments: tuple[str, ...]):
    with private_home() as home:
        (home / "nested.yaml").write_text(NESTED)
        with Program(*arguments, home=home) as command:
            assert command.ended() == 2
            assert "levels deep" in command.written()
            assert "Traceback" not in command.written()


def test_a_running_scheduler_keeps_its_configuration_when_the_file_becomes_nested():
    with private_home() as home:
        config = home / "scheduler.yaml"
        config.write_text(GOOD)
        flags = ("--config=scheduler.yaml", "--watch-config", "--nodes=1")
        with Program("up", *flags, home=home) as up:
            up.ready()
            config.write_text(GOOD + NESTED)
            line = up.mentions("Configuration not reloaded; keeping the last good version")
            assert "levels deep" in line
            config.write_text(GOOD + "parallelism: 8\n")
            up.mentions("Configuration reloaded")
            assert up.end() == 0


def refusal_of(content_type: str, body: str) -> str:
    """In a child: what the embedded API server responds to a body."""
    from mooring.apiserver.negotiation import parse_body
    from mooring.apiserver.status import StatusError

    try:
        parse_body(body.encode(), content_type)
    except StatusError as refused:
        return f"{refused.code} {refused}"
    return "nothing"


BODIES = {
    "YAML": ("application/yaml", "a: " + "[" * 50_000),
    "YAML with its brackets closed": ("application/yaml", "[" * 20_000 + "]" * 20_000),
    "JSON": ("application/json", deep_json(50_000).decode()),
    "JSON that a parser would read, and a walk would not": ("application/json", deep_json(MOST_NESTED + 1).decode()),
    "a JSON patch": ("application/json-patch+json", "[" * 50_000),
}


@pytest.mark.parametrize("body", BODIES)
def test_the_embedded_server_refuses_a_nested_body(body: str):
    found = bounded(f"{HERE}:refusal_of", *BODIES[body], cpu_seconds=CPU_SECONDS)
    assert found.startswith("400 ")
    assert "levels deep" in found


def test_a_continue_token_that_is_too_deep_is_refused():
    import base64

    from mooring.apiserver.lists import _read_token
    from mooring.apiserver.status import StatusError

    with pytest.raises(StatusError, match="continue key is not valid"):
        _read_token(base64.urlsafe_b64encode(b"[" * 6000).decode())


def test_many_shallow_patches_make_no_deep_object():
    from mooring.apiserver.handlers import patch_change
    from mooring.apiserver.options import FieldValidation
    from mooring.apiserver.resources import Resource
    from mooring.apiserver.status import StatusError

    row = Resource("example.com", "v1", "notes", "note", "Note", False, ())
    inner: Any = 1
    for _ in range(MOST_NESTED - 5):
        inner = {"a": inner}
    document: Any = {"apiVersion": "example.com/v1", "kind": "Note", "spec": inner}
    copy = [{"op": "copy", "from": "/spec", "path": "/spec" + "/a" * (MOST_NESTED - 5)}]
    change = patch_change(row, "application/json-patch+json", copy, FieldValidation())
    with pytest.raises(StatusError, match="levels deep"):
        change(document)
