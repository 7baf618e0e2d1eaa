"""The file of a snapshot: what was written is read again, and what is not whole is refused."""

from __future__ import annotations

import errno
import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from mooring import __version__
from mooring.base.errors import OperatorMistake
from mooring.objects import Node, Pod
from mooring.simulated.cluster_file import load_cluster_file
from mooring.snapshots import Header, LeftOut, Spool, is_snapshot, read_snapshot, write_snapshot

TAKEN = "2026-07-26T10:00:00Z"


def an_object(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "uid": name}} | more


NODES = [an_object("Node", f"node-{number}") for number in range(3)]
PODS = [an_object("Pod", f"pod-{number}", spec={"nodeName": "node-1"}) for number in range(2)]


def written(path: Path, **more: Any) -> Path:
    with Spool() as spool:
        for kind, documents in (("pods", PODS), ("jobs.batch", []), ("nodes", NODES)):
            spool.begin(kind)
            for document in documents:
                spool.add(document)
        spool.finish()
        size = write_snapshot(path, Header(taken_at=TAKEN, counts=dict(spool.counts), **more), spool)
    assert size == path.stat().st_size
    return path


def lines_of(path: Path) -> list[bytes]:
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def compressed(path: Path, lines: list[bytes]) -> Path:
    path.write_bytes(gzip.compress(b"".join(lines)))
    return path


def mistake(path: Path) -> str:
    with pytest.raises(OperatorMistake) as refused:
        list(read_snapshot(path).documents())
    return str(refused.value)


def test_what_was_written_is_read(tmp_path: Path):
    left_out = [LeftOut("csinodes.storage.k8s.io", "forbidden")]
    snapshot = read_snapshot(written(tmp_path / "it", server_version="v1.36.4", left_out=left_out))
    assert snapshot.header == Header(
        taken_at=TAKEN, server_version="v1.36.4", counts={"pods": 2, "nodes": 3}, left_out=left_out
    )
    assert list(snapshot.documents()) == PODS + NODES
    assert list(snapshot.documents()) == PODS + NODES, "it can be read again"


def test_typed_access_decodes_the_wanted_kinds_alone(tmp_path: Path):
    snapshot = read_snapshot(written(tmp_path / "it"))
    assert [node.name for node in snapshot.objects(Node)] == ["node-0", "node-1", "node-2"]
    assert [type(each) for each in snapshot.objects(Pod, Node)] == [Pod, Pod, Node, Node, Node]


def test_the_first_line_holds_kind_of_file_and_version(tmp_path: Path):
    first = json.loads(lines_of(written(tmp_path / "it"))[0])
    assert (first["mooring"], first["version"], first["mooringVersion"]) == ("snapshot", 1, __version__)
    assert json.loads(lines_of(tmp_path / "it")[-1]) == {"mooring": "end", "objects": 5}


def test_it_is_recognized_by_its_content(tmp_path: Path):
    assert is_snapshot(written(tmp_path / "cluster.yaml"))
    plain = tmp_path / "plain.json"
    plain.write_bytes(b"".join(lines_of(tmp_path / "cluster.yaml")))
    assert is_snapshot(plain)
    assert list(read_snapshot(plain).documents()) == PODS + NODES
    other = tmp_path / "it.snapshot"
    other.write_text('{"kind": "List", "items": []}')
    assert not is_snapshot(other)
    assert not is_snapshot(tmp_path / "gone")
    os.mkfifo(tmp_path / "pipe")
    assert not is_snapshot(tmp_path / "pipe")


def test_only_its_user_can_read_it(tmp_path: Path):
    assert written(tmp_path / "it").stat().st_mode & 0o777 == 0o600


def test_a_newer_version_is_refused_with_what_to_do(tmp_path: Path):
    header = {"mooring": "snapshot", "version": 2, "mooringVersion": "9.1.0", "counts": "another form"}
    text = mistake(compressed(tmp_path / "it", [json.dumps(header, separators=(",", ":")).encode() + b"\n"]))
    assert "is a snapshot of version 2" in text
    assert "reads versions up to 1" in text
    assert "written by Mooring 9.1.0. Use that Mooring or a newer one" in text


DAMAGED = {
    "without its last line": (lambda lines: lines[:-1], "line 6: it ends after 5 of 5 objects, without the closing"),
    "without some of its objects": (lambda lines: [*lines[:3], lines[-1]], "line 4: it has 2 objects of 5"),
    "cut between lines": (lambda lines: lines[:3], "line 3: it ends after 2 of 5 objects"),
    "with a line twice": (lambda lines: [*lines[:2], *lines[1:]], "line 7: it has more objects than the 5"),
    "with text behind its end": (lambda lines: [*lines, b"{}\n"], "line 8: text follows the closing line"),
    "with a line that is no JSON": (lambda lines: [*lines[:2], b"{\n", *lines[3:]], "line 3: the line cannot be"),
    "with a list for an object": (lambda lines: [*lines[:2], b"[]\n", *lines[3:]], "line 3: the line cannot be"),
    "nested without end": (lambda lines: [*lines[:2], b"[" * 100_000 + b"\n", *lines[3:]], "line 3: the line cannot"),
    "with another end": (lambda lines: [*lines[:-1], b'{"mooring":"end","objects":9}\n'], "it has 5 objects of 9"),
    "without a version": (lambda _: [b'{"mooring":"snapshot"}\n'], "line 1: its version is missing"),
    "without a time": (lambda _: [b'{"mooring":"snapshot","version":1}\n'], "line 1: the header cannot be decoded"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_refused_by_line(tmp_path: Path, damage: Any, message: str):
    whole = written(tmp_path / "it")
    text = mistake(compressed(whole, damage(lines_of(whole))))
    assert message in text
    assert "take another with `mooring snapshot`" in text


@pytest.mark.parametrize("part", [0.2, 0.5, 0.9, 0.99])
def test_a_file_that_was_not_copied_whole_is_refused(tmp_path: Path, part: float):
    path = written(tmp_path / "it")
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    assert is_snapshot(path)
    assert "is damaged at line" in mistake(path)
    with pytest.raises(OperatorMistake, match="is damaged at line"):
        load_cluster_file(str(path), now=1e9)


def test_flipped_bits_are_noticed(tmp_path: Path):
    path = written(tmp_path / "it")
    content = bytearray(path.read_bytes())
    content[-30] ^= 0xFF
    path.write_bytes(content)
    assert "is damaged at line" in mistake(path)


def test_a_line_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mooring.snapshots.file_format.MOST_LINE_BYTES", 10_000)
    whole = written(tmp_path / "it")
    bomb = compressed(whole, [*lines_of(whole)[:2], b" " * 100_000_000])
    assert bomb.stat().st_size < 200_000
    assert "line 3: the line has more than 10,000 bytes" in mistake(bomb)


def test_a_file_that_expands_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("mooring.snapshots.file_format.MOST_BYTES", 10_000)
    whole = written(tmp_path / "it")
    first = lines_of(whole)[0].replace(b'"nodes":3', b'"nodes":1000000')
    assert "it expands to more than 10,000 bytes" in mistake(
        compressed(whole, [first, *(lines_of(whole)[1:2] * 1_000)])
    )


def test_another_compressed_file_is_no_snapshot(tmp_path: Path):
    other = compressed(tmp_path / "it", [b"apiVersion: v1\n"])
    assert "is no snapshot of Mooring" in mistake(other)


def test_a_file_that_is_not_there(tmp_path: Path):
    assert "cannot be read: No such file or directory" in mistake(tmp_path / "gone")


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "it")
    before = path.read_bytes()

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("mooring.snapshots.file_format.shutil.copyfileobj", full)
    with pytest.raises(OSError, match="No space left on device"):
        written(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["it"]


def test_a_cluster_file_with_its_objects(tmp_path: Path):
    initial = load_cluster_file(str(written(tmp_path / "it")), now=1e9)
    assert [each["metadata"]["name"] for each in initial.restored] == [
        "pod-0", "pod-1", "node-0", "node-1", "node-2"
    ]  # fmt: skip
