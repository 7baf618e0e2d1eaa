"""The last decision about each pod, and no more of them than memory allows."""

import numpy as np
import pytest

from mooring.base.clock import ManualClock
from mooring.scheduler.introspection.decision_log import EARLIER, DecisionLog
from mooring.testing import a_pod


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def journal(clock) -> DecisionLog:
    return DecisionLog(clock, remembered=3)


def test_the_last_decision_is_what_is_read(journal):
    pod = a_pod("web", uid="u1")
    journal.write(pod, {"node": None, "attempt": 1})
    journal.write(pod, {"node": "node-1", "attempt": 2})
    assert journal.read("default/web") == {
        "uid": "u1",
        "time": "2023-11-14T22:13:20Z",
        "node": "node-1",
        "attempt": 2,
        "earlier": [
            {"time": "2023-11-14T22:13:20Z", "lastTime": "2023-11-14T22:13:20Z", "attempts": 1, "message": ""},
        ],
    }


def test_attempts_in_a_row_that_ended_alike_count_as_one(journal, clock):
    pod = a_pod("web")
    for message in ("no room", "no room", "no disk", "no room"):
        journal.write(pod, {"node": None, "message": message})
        clock.advance(60)
    assert [(each["attempts"], each["message"]) for each in journal.read("default/web")["earlier"]] == [
        (2, "no room"),
        (1, "no disk"),
    ]
    first = journal.read("default/web")["earlier"][0]
    assert (first["time"], first["lastTime"]) == ("2023-11-14T22:13:20Z", "2023-11-14T22:14:20Z")


def test_attempts_know_which_events_started_them(clock):
    events = iter(["", "NodeAdd", "AssignedPodDelete", "NodeAdd", "NodeAdd"])
    journal = DecisionLog(clock, started_by=lambda _uid: next(events))
    pod = a_pod("web")
    for message in ("no room", "no room", "no room", "no room", ""):
        journal.write(pod, {"node": None if message else "node-1", "message": message})
    found = journal.read("default/web")
    assert found is not None
    assert found["startedBy"] == "NodeAdd"
    assert [each["startedBy"] for each in found["earlier"]] == [{"NodeAdd": 2, "AssignedPodDelete": 1}]


def test_a_binding_that_failed_is_an_attempt_with_its_error(journal):
    pod = a_pod("web")
    journal.write(pod, {"node": "node-1"})
    journal.note(pod, node=None, error="the disk is gone")
    journal.write(pod, {"node": "node-2"})
    assert [each["message"] for each in journal.read("default/web")["earlier"]] == ["the disk is gone"]


def test_the_attempts_of_a_pod_of_the_same_name_are_not_its_own(journal):
    journal.write(a_pod("web"), {"node": None, "message": "no room"})
    journal.write(a_pod("web"), {"node": "node-1"})
    assert "earlier" not in journal.read("default/web")


def test_earlier_attempts_are_bounded_in_number_and_count_as_bytes():
    journal = DecisionLog(ManualClock(), remembered_bytes=10_000)
    pod = a_pod("web")
    for number in range(50):
        journal.write(pod, {"node": None, "message": f"{number:0300}"})
    read = journal.read("default/web")
    assert read is not None
    earlier = read["earlier"]
    assert [int(each["message"]) for each in earlier] == list(range(50 - 1 - EARLIER, 49))
    for number in range(10):
        journal.write(a_pod(f"other-{number}"), {"node": None, "message": "x" * 500})
    assert journal.read("default/web") is None
    assert journal.read("default/other-0") is not None


def test_an_unknown_pod_has_no_decision(journal):
    assert journal.read("default/unknown") is None


def test_a_note_names_what_became_of_the_decision(journal):
    pod = a_pod("web")
    journal.write(pod, {"node": "node-1"})
    journal.note(pod, node=None, error="the disk is gone")
    found = journal.read("default/web")
    assert (found["node"], found["error"]) == (None, "the disk is gone")


def test_a_note_about_a_pod_that_is_no_more_does_not_reach_a_recreated_one(journal):
    first, second = a_pod("web"), a_pod("web")
    journal.write(first, {"node": "node-1"})
    journal.write(second, {"node": "node-2"})
    journal.note(first, error="too late")
    assert "error" not in journal.read("default/web")


def test_a_new_decision_is_without_the_notes_of_the_old_one(journal):
    pod = a_pod("web")
    journal.write(pod, {"node": "node-1"})
    journal.note(pod, error="once")
    journal.write(pod, {"node": "node-1"})
    assert "error" not in journal.read("default/web")


def test_the_pods_decided_longest_ago_are_forgotten_first(journal):
    for name in ("a", "b", "c", "a", "d"):
        journal.write(a_pod(name), {"node": None})
    assert [journal.read(f"default/{name}") is not None for name in "abcd"] == [True, False, True, True]


def test_long_decisions_push_others_out_but_never_themselves():
    journal = DecisionLog(ManualClock(), remembered_bytes=1_000)
    for name in ("a", "b", "c"):
        journal.write(a_pod(name), {"message": name * 400})
    assert [journal.read(f"default/{name}") is not None for name in "abc"] == [False, True, True]
    journal.write(a_pod("long"), {"message": "x" * 5_000})
    assert [journal.read(f"default/{name}") is not None for name in ("b", "c", "long")] == [False, False, True]


def test_what_a_reader_does_to_its_copy_stays_there(journal):
    journal.write(a_pod("web"), {"scores": [1]})
    journal.read("default/web")["scores"].append(2)
    assert journal.read("default/web")["scores"] == [1]


def test_numbers_of_numpy_are_numbers(journal):
    journal.write(a_pod("web"), {"total": np.int64(7), "odd": {"a": object}})
    assert journal.read("default/web")["total"] == 7
