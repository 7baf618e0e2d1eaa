"""A recording has what the scheduler saw and decided, and is read as far as it was written."""

from __future__ import annotations

import errno
import gzip
import os
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.queue.builders import a_queue
from tests.recording.recorded import read_recorded, recorded
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base.errors import OperatorMistake
from mooring.engine.evidence import EvidenceRecord
from mooring.objects import Node, Pod
from mooring.objects.core import PodCondition
from mooring.recording import RecordedState, Recorder, Recording, RecordingWriter, rows
from mooring.recording.encoding import RowEncoder
from mooring.recording.file_format import members
from mooring.recording.ledger import Ledger
from mooring.recording.recorder import ASSUMED
from mooring.scheduler.introspection.recorded_changes import RecordingPodFeed, RecordingState
from mooring.testing import a_node_object, a_pod


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.recording"


def test_every_decision_is_recorded_with_its_evidence(path: Path):
    recording = read_recorded(path, a_cluster_of("a", "b"), arriving(0, "web"), arriving(5, "large", cpu="8"))
    assert [(each.pod, each.kind, each.node) for each in recording.decisions] == [
        ("default/web", "bound", recording.decisions[0].node),
        ("default/large", "refused", None),
    ]
    assert recording.decisions[1].time - recording.decisions[0].time == 5.0
    assert recording.evidence(1)["rejections"][0]["reasons"] == ["Insufficient cpu"]
    assert recording.notes == []
    assert recording.header.profiles == ["default-scheduler"]


def test_the_state_at_a_decision_is_that_before_it_was_carried_out(path: Path):
    recording = read_recorded(
        path, a_cluster_of("a", "b"), arriving(0, "first", seconds=10), arriving(5, "second"), arriving(20, "third")
    )
    nodes = [{pod.name: pod.spec.node_name for pod in recording.state_at(index).pods()} for index in range(3)]
    first, second = recording.decisions[0].node, recording.decisions[1].node
    assert nodes == [{"first": ""}, {"first": first, "second": ""}, {"second": second, "third": ""}]
    assert [node.name for node in recording.state_at(0).nodes()] == ["a", "b"]
    # Backwards, after later states were read.
    assert [pod.name for pod in recording.state_at(0).pods()] == ["first"]


def test_a_nomination_is_part_of_the_state(path: Path):
    recording = read_recorded(
        path, a_cluster_of("a"), arriving(0, "low", priority=1), arriving(60, "high", priority=10)
    )
    kinds = [(each.pod, each.kind) for each in recording.decisions]
    assert kinds == [("default/low", "bound"), ("default/high", "preempted"), ("default/high", "bound")]
    high = next(pod for pod in recording.state_at(2).pods() if pod.name == "high")
    assert high.status.nominated_node_name == "a"


def test_a_pod_is_recorded_once_and_its_binding_in_a_short_row(path: Path):
    recording = read_recorded(path, a_cluster_of("a"), arriving(0, "web", labels={"app": "web"}), arriving(5, "last"))
    about_web = [row for row in recording.history() if b"web" in rows.encode(row)]
    kinds = [type(row) for row in about_web if not isinstance(row, rows.SegmentHeader)]
    assert kinds == [rows.Set, rows.Decided, rows.Confirmed]
    decided = about_web[-2]
    assert isinstance(decided, rows.Decided)
    assert decided.is_assumed
    web = next(pod for pod in recording.state_at(1).pods() if pod.name == "web")
    assert (web.spec.node_name, web.labels) == ("a", {"app": "web"})


def a_bound_pod(**changes: Any) -> Pod:
    pod = a_pod("web", uid="web", node="a")
    status = msgspec.structs.replace(
        pod.status,
        conditions=(PodCondition(type="PodScheduled", status="True", last_transition_time="2026-01-01T00:00:09Z"),),
    )
    metadata = msgspec.structs.replace(pod.metadata, **{"resource_version": "9", "generation": 1, **changes})
    return msgspec.structs.replace(pod, metadata=metadata, status=status)


CONFIRMATIONS = {
    "nothing else is new": (a_bound_pod(), rows.Confirmed),
    "the node's topology became labels": (a_bound_pod(labels={"topology.kubernetes.io/zone": "z"}), rows.Confirmed),
    "the spec is another": (a_bound_pod(generation=2), rows.Set),
    "an annotation came": (a_bound_pod(annotations={"example.com/a": "b"}), rows.Set),
    "it is being deleted": (a_bound_pod(deletion_timestamp="2026-01-01T00:00:10Z"), rows.Set),
}


@pytest.mark.parametrize(("bound", "row"), CONFIRMATIONS.values(), ids=CONFIRMATIONS.keys())
def test_a_recorded_binding_has_all_that_the_watch_showed(path: Path, bound: Pod, row: type):
    pending = a_pod("web", uid="web")
    force_setattr(pending.metadata, "generation", 1)
    with RecordingWriter(path, recorder := Recorder(), keep_annotations=["example.com/*"]):
        state = RecordingState(recorder)
        state.set_node(a_node_object("a"))
        feed = RecordingPodFeed(recorder, state, a_queue(), ["default-scheduler"], [])
        feed.changed(pending)
        recorder.decided(_evidence("web", node="a"))
        state.assume(pending, "a", 1.0)
        feed.changed(bound)
        recorder.decided(_evidence("other"))
    recording = Recording.read(path)
    history = [type(each) for each in recording.history()]
    assert history[history.index(rows.Decided) + 1] is row
    assert recording.state_at(1).pods() == [bound]


def test_a_later_segment_begins_with_the_order_of_the_pods_on_a_node():
    """A pod that counts in another way is taken off its node and put back, behind the others."""
    recorder, encoder = Recorder(), RowEncoder(Ledger())
    state = RecordingState(recorder)
    feed = RecordingPodFeed(recorder, state, a_queue(), ["default-scheduler"], [])
    state.set_node(a_node_object("a"))
    first, second = a_pod("first", uid="first", node="a"), a_pod("second", uid="second", node="a")
    waiting = a_pod("waiting", uid="waiting")
    for pod in (waiting, first):
        feed.changed(pod)
    state.assume(waiting, "a", 1.0)
    feed.changed(second)
    terminating = msgspec.structs.replace(
        first.metadata, resource_version="2", deletion_timestamp="2026-01-01T00:00:10Z"
    )
    feed.changed(msgspec.structs.replace(first, metadata=terminating))
    for item in recorder.take(100):
        encoder.add_lines(item, [])
    begin = Ledger()
    for row in encoder.ledger.rows(2.0):
        begin.apply(row)
    on_node = [pod.name for pod in RecordedState(begin, []).pods() if pod.spec.node_name]
    assert on_node == [pod.name for view in state.nodes for pod in view.pods] == ["waiting", "second", "first"]


def test_a_decision_waits_until_it_is_known_whether_its_pod_is_assumed():
    recorder = Recorder()
    recorder.decided(_evidence("refused", node=None))
    recorder.decided(_evidence("bound"))
    assert [item[2].pod for item in recorder.take(10)] == ["refused"]
    recorder.assumed("bound", "node-0")
    assert [(item[2].pod, item[3]) for item in recorder.take(10)] == [("bound", ASSUMED)]
    recorder.decided(_evidence("never assumed"))
    assert recorder.take(10) == []
    recorder.decided(_evidence("last"))
    assert [(item[2].pod, item[3]) for item in recorder.take(10)] == [("never assumed", 0)]
    assert [item[2].pod for item in recorder.take(10, is_last=True)] == ["last"]


def test_what_scheduling_does_not_read_is_left_out(path: Path):
    secret = {"kubectl.kubernetes.io/last-applied-configuration": "a secret", "example.com/kept": "yes"}
    volume = {"name": "token", "secret": {"secretName": "a secret"}}
    pod = a_pod("web", uid="web")
    pod = msgspec.structs.replace(
        pod,
        metadata=msgspec.structs.replace(pod.metadata, annotations=secret),
        spec=msgspec.structs.replace(pod.spec, _volumes=(volume,)),
    )
    cluster = msgspec.structs.replace(a_cluster_of("a"), pods=[pod])
    recording = read_recorded(path, cluster, keep_annotations=["example.com/*"])
    assert b"a secret" not in gzip.decompress(path.read_bytes())
    assert recording.state_at(0).pods()[0].annotations == {"example.com/kept": "yes"}


def test_the_file_is_only_for_its_owner(path: Path):
    recorded(path, a_cluster_of("a"), arriving(0, "web"))
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_file_that_ends_anywhere_is_read_up_to_its_last_whole_row(path: Path, tmp_path: Path):
    whole = read_recorded(path, a_cluster_of("a", "b"), *(arriving(at, f"pod-{at}", cpu="10m") for at in range(20)))
    content, cut = path.read_bytes(), tmp_path / "cut.recording"
    counts = []
    for size in range(len(content) - 1, len(content) // 2, -97):
        cut.write_bytes(content[:size])
        recording = Recording.read(cut)
        assert len(recording.notes) == 1
        counts.append(len(recording.decisions))
        assert [each.pod for each in recording.decisions] == [each.pod for each in whole.decisions[: counts[-1]]]
        if counts[-1]:
            recording.state_at(counts[-1] - 1).pods()
    assert counts == sorted(counts, reverse=True)


NO_RECORDINGS = {
    "an empty file": (b"", "is empty"),
    "another file": (b"kind: Pod\n", "is no recording of Mooring"),
    "another compressed file": (gzip.compress(b"{}\n"), "is no recording of Mooring"),
    "a newer version": (
        gzip.compress(b'{"mooring":"recording","version":99,"mooringVersion":"9.0"}\n'),
        "is a recording of version 99, and this Mooring",
    ),
    "a file that ends at once": (gzip.compress(b'{"mooring":"recording"')[:9], "ends before its first row"),
}


@pytest.mark.parametrize(("content", "message"), NO_RECORDINGS.values(), ids=NO_RECORDINGS.keys())
def test_what_is_no_recording_is_refused(path: Path, content: bytes, message: str):
    path.write_bytes(content)
    with pytest.raises(OperatorMistake, match=message):
        Recording.read(path)


def test_a_missing_file_is_named(path: Path):
    with pytest.raises(OperatorMistake, match="No such file"):
        Recording.read(path)


def test_a_limit_drops_the_oldest_segments_and_keeps_the_file_below_it(path: Path):
    limit, digits = 512 * 1024, random.Random(7)
    recorder = Recorder(most_items=1_000_000)
    for number in range(30):
        recorder.set(a_node_object(f"node-{number}"))
    for _ in range(20_000):
        name = f"pod-{digits.getrandbits(128):x}"
        recorder.set(a_pod(name, uid=name))
        recorder.decided(_evidence(f"default/{name}"))
        recorder.deleted(Pod, f"default/{name}", name)
    with RecordingWriter(path, recorder, limit_bytes=limit) as writer:
        recorder.wake.set()
    assert writer.problem is None
    recording = Recording.read(path)
    assert limit // 2 < path.stat().st_size <= limit
    assert recording.decisions[-1].number == 20_000
    assert 1 < recording.decisions[0].number < 20_000
    assert len(recording.headers) > 1
    # A segment begins with a state: nothing before it is needed.
    assert len(recording.state_at(0).nodes()) == 30
    assert len(recording.state_at(0).pods()) == 1
    assert [each.index for each in recording.decisions] == list(range(len(recording.decisions)))


def test_an_earlier_recording_is_continued(path: Path):
    recorded(path, a_cluster_of("a"), arriving(0, "first"))
    recording = read_recorded(path, a_cluster_of("b"), arriving(0, "second"))
    assert [(each.number, each.pod) for each in recording.decisions] == [(1, "default/first"), (2, "default/second")]
    assert [header.segment for header in recording.headers.values()] == [1, 2]
    assert [node.name for node in recording.state_at(1).nodes()] == ["b"]


def test_a_recording_that_was_cut_off_is_continued(path: Path):
    recorded(path, a_cluster_of("a"), arriving(0, "first"))
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    recording = read_recorded(path, a_cluster_of("b"), arriving(0, "second"))
    assert [each.pod for each in recording.decisions] == ["default/first", "default/second"]
    assert all(member.is_whole for member in members(path))


PROBLEMS = {
    "a folder that does not exist": ("missing/a.recording", "its folder does not exist"),
    "a folder": (".", "folder"),
}


@pytest.mark.parametrize(("name", "message"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_a_file_that_cannot_be_written_ends_the_recording_alone(tmp_path: Path, name: str, message: str):
    recorder = Recorder()
    with RecordingWriter(tmp_path / name, recorder) as writer:
        writer.wait()
        recorder.set(a_node_object("a"))
    assert writer.problem is not None
    assert message in writer.problem
    assert not recorder.is_on


def test_a_file_that_is_no_recording_is_not_overwritten(path: Path):
    path.write_text("a shopping list")
    recorder = Recorder()
    with RecordingWriter(path, recorder) as writer:
        writer.wait()
    assert "is no recording: name another file" in str(writer.problem)
    assert path.read_text() == "a shopping list"


def test_two_processes_do_not_record_to_one_file(path: Path):
    with RecordingWriter(path, Recorder()) as first:
        first.opened()
        with RecordingWriter(path, Recorder()) as second:
            second.wait()
        assert "another process records there" in str(second.problem)
    assert first.problem is None


def test_a_full_disk_ends_the_recording_and_leaves_what_can_be_read(path: Path, monkeypatch: pytest.MonkeyPatch):
    recorder = Recorder()
    writer = RecordingWriter(path, recorder)
    write = writer._write

    def full(data: bytes) -> None:
        if writer._size > 100:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(data)

    monkeypatch.setattr(writer, "_write", full)
    with writer:
        writer.opened()
        for number in range(5000):
            recorder.set(a_node_object(f"node-{number}"))
        recorder.wake.set()
        writer.wait()
    assert "the disk is full" in str(writer.problem)
    assert Recording.read(path).decisions == []


def test_when_the_writer_falls_behind_decisions_are_counted_and_the_state_stays_right(path: Path):
    recorder = Recorder(most_items=4)
    for number in range(3):
        recorder.set(a_node_object(f"node-{number}", cpu="1"))
    for cpu in ("2", "3", "4"):
        recorder.set(a_node_object("node-0", cpu=cpu))
        recorder.decided(_evidence(f"default/pod-{cpu}"))
    recorder.deleted(Node, "node-1")
    with RecordingWriter(path, recorder) as writer:
        writer.opened()
        recorder.wake.set()
    with RecordingWriter(path, more := Recorder()):
        more.set(a_node_object("other"))
        more.decided(_evidence("default/last"))
    recording = Recording.read(path)
    assert recorder.dropped == 3
    assert recording.missing == 3
    assert "3 decisions are missing: the writer fell behind" in recording.notes
    assert [(each.number, each.pod) for each in recording.decisions] == [(1, "default/last")]
    changes = [row for row in recording.history() if isinstance(row, rows.Set | rows.Deleted)]
    last = [row for row in changes if isinstance(row, rows.Set) and b"node-0" in bytes(row.object)][-1]
    assert b'"cpu":"4"' in bytes(last.object)
    assert any(isinstance(row, rows.Deleted) and row.key == "node-1" for row in changes)


def test_a_damaged_part_ends_what_is_read(path: Path):
    recorded(path, a_cluster_of("a"), *(arriving(at, f"pod-{at}", cpu="10m") for at in range(50)))
    content = bytearray(path.read_bytes())
    content[-4:] = b"\xff\xff\xff\xff"  # the length that closes the last part
    path.write_bytes(bytes(content))
    recording = Recording.read(path)
    assert len(recording.notes) == 1


def _evidence(pod: str, node: str | None = "node-0") -> EvidenceRecord:
    return EvidenceRecord(pod, pod, "default-scheduler", 1, node, 3, 3, 3, 0, {}, "")
