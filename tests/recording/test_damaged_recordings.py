"""A recording of another person may hold anything: what is read of it is right, or it is damaged, in a sentence."""

from __future__ import annotations

import contextlib
import gzip
import json
import random
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.recording.recorded import recorded
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake
from mooring.cli.main import exit_code
from mooring.plugins.catalogue import catalogue
from mooring.recording import Recording, file_format
from mooring.replay import cluster_at, replay

HEADER = b'{"mooring":"recording","version":1,"time":1.0,"profiles":["default-scheduler"]}\n'


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The rows of a small recording: pods that are bound, refused and preempted."""
    path = tmp_path_factory.mktemp("whole") / "a.recording"
    arrivals = [
        arriving(0, "low", priority=1),
        arriving(5, "web", cpu="100m", seconds=10),
        arriving(9, "large", cpu="8"),
        arriving(60, "high", priority=10, cpu="2"),
    ]
    recorded(path, a_cluster_of("a", "b"), *arrivals)
    return gzip.decompress(path.read_bytes()).split(b"\n")[:-1]


def use(path: Path) -> None:
    """Everything that reads a recording."""
    recording = Recording.read(path)
    for each in recording.decisions:
        timestamp(each.time)
        recording.evidence(each.index)
        recording.configuration_at(each.index)
        cluster_at(recording, each.index)
    list(recording.history())
    replay(recording, None, catalogue())


def used(path: Path, content: bytes) -> str:
    """What the user reads; empty where nothing was wrong. Anything but a mistake fails the test."""
    path.write_bytes(content)
    try:
        use(path)
    except OperatorMistake as mistake:
        return str(mistake)
    return ""


VALUES: list[Any] = [None, True, -1, 0, 2**31, 2**63, 10**30, 1e308, "", "x", "a/b/c", "\x1b[2J"]
VALUES += [[], {}, [[]], {"a": 1}, [1, "a"]]


def places_in(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to all values of a document."""
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        yield (*path, key)
        yield from places_in(each, (*path, key))


def with_another_value(line: bytes, draw: random.Random) -> bytes:
    document = json.loads(line)
    place = draw.choice(list(places_in(document)))
    holder = document
    for step in place[:-1]:
        holder = holder[step]
    if draw.random() < 0.2 and isinstance(holder, dict):
        del holder[place[-1]]
    else:
        holder[place[-1]] = draw.choice(VALUES)
    return json.dumps(document, separators=(",", ":")).encode()


def changed(lines: list[bytes], draw: random.Random) -> bytes:
    """The file with a few of its rows, or of its bytes, changed."""
    lines = list(lines)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        match draw.choice(["value", "value", "value", "drop", "twice", "swap", "cut"]):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "twice":
                lines.insert(draw.randrange(len(lines)), lines[at])
            case "swap":
                other = draw.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
            case "cut":
                lines[at] = lines[at][: draw.randrange(len(lines[at]) + 1)]
            case _:
                with contextlib.suppress(ValueError, IndexError):  # it was cut before
                    lines[at] = with_another_value(lines[at], draw)
    content = bytearray(gzip.compress(b"\n".join([*lines, b""]), 1, mtime=0))
    if draw.random() < 0.2:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    return bytes(content[: draw.randrange(len(content))]) if draw.random() < 0.1 else bytes(content)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_any_damage_is_a_sentence_or_does_no_harm(whole: list[bytes], tmp_path: Path, seed: int):
    used(tmp_path / "x.recording", changed(whole, random.Random(seed)))


def test_the_recording_itself_is_read_without_a_mistake(whole: list[bytes], tmp_path: Path):
    assert used(tmp_path / "x.recording", gzip.compress(b"\n".join([*whole, b""]))) == ""


def opened(row: str) -> Callable[[list[bytes]], list[bytes]]:
    """Another end of the opening state."""
    return lambda lines: [row.encode() if b'"row":"opened"' in line else line for line in lines]


def before_decisions(row: str) -> Callable[[list[bytes]], list[bytes]]:
    def inserted(lines: list[bytes]) -> list[bytes]:
        first = next(at for at, line in enumerate(lines) if line.startswith(b'{"row":"decision"'))
        return [*lines[:first], row.encode(), *lines[first:]]

    return inserted


BROKEN: dict[str, tuple[Callable[[list[bytes]], list[bytes]], str]] = {
    "a node table of a billion rows": (
        opened('{"row":"opened","time":1,"places":1000000000}'),
        "rows of the node table",
    ),
    "a free row beyond the table": (
        opened('{"row":"opened","time":1,"places":0,"freed":[1000000000]}'),
        "beyond the 0 rows of the node table",
    ),
    "a cut decision": (before_decisions('{"row":"decision","time":1,"evidence":['), "a row cannot be decoded"),
    "a decision without evidence": (
        before_decisions('{"row":"decision","time":1,"outcome":"bound"}'),
        "a row cannot be decoded",
    ),
    "a wrong gap": (before_decisions('{"row":"gap","decisions":"many"}'), "a row cannot be decoded"),
    "an object that is an array": (
        before_decisions('{"row":"set","time":1,"apiVersion":"v1","kind":"Pod","object":[]}'),
        "a row cannot be applied",
    ),
    "a pod with a number that no API server accepts": (
        lambda lines: [line.replace(b'"priority":10', b'"priority":%d' % 10**30) for line in lines],
        "a row cannot be applied: OverflowError",
    ),
    "a time that no calendar has": (
        before_decisions('{"row":"held","time":1e308,"pod":"a/b","uid":"x"}'),
        "<= 253402300799",
    ),
    "a decision by another name": (
        before_decisions('{"time":1,"row":"held","pod":"a/b","uid":"x"}'),
        "do not begin as rows of decisions do",
    ),
}


@pytest.mark.parametrize(("change", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_damaged_is_named(whole: list[bytes], tmp_path: Path, capsys, change, message: str):
    path = tmp_path / "x.recording"
    mistake = used(path, gzip.compress(b"\n".join([*change(whole), b""])))
    assert f"The recording {path} is damaged: " in mistake
    assert message in mistake
    assert exit_code(["replay", str(path), "--again"]) == 2
    assert "is damaged" in capsys.readouterr().err


def bomb(line: bytes, count: int) -> bytes:
    compressor = zlib.compressobj(9, wbits=file_format.GZIP)
    parts = [compressor.compress(HEADER)] + [compressor.compress(line * 1000) for _ in range(count // 1000)]
    return b"".join([*parts, compressor.flush()])


BOMBS = {
    "line breaks": (b"\n", 300_000, "lines"),
    "rows": (b'{"row":"held","pod":"a/b","uid":"x"}\n', 300_000, "lines"),
    "text": (b"x" * 5_000 + b"\n", 10_000, "expands to"),
}


@pytest.mark.parametrize(("line", "count", "message"), BOMBS.values(), ids=BOMBS.keys())
def test_a_small_file_that_expands_to_much_is_refused_before_it_is_taken_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: bytes, count: int, message: str
):
    """With lower limits than those of users."""
    monkeypatch.setattr(file_format, "FEWEST_LINES", 20_000)
    monkeypatch.setattr(file_format, "LARGEST_MEMBER_BYTES", 20_000_000)
    path = tmp_path / "x.recording"
    path.write_bytes(bomb(line, count))
    tracemalloc.start()
    try:
        with pytest.raises(OperatorMistake, match=f"is damaged: .*{message}"):
            Recording.read(path)
        assert tracemalloc.get_traced_memory()[1] < 70_000_000
    finally:
        tracemalloc.stop()


def test_a_row_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(file_format, "MOST_LINE_BYTES", 1000)
    path = tmp_path / "x.recording"
    path.write_bytes(gzip.compress(HEADER + b'{"row":"held","message":"' + b"x" * 2000 + b'"}\n'))
    with pytest.raises(OperatorMistake, match="a row has more than 1,000 bytes"):
        Recording.read(path)
