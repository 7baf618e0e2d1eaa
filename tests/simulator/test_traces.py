"""Traces: a row becomes a pod, and every bad row is reported with its line and column."""

from __future__ import annotations

import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Arrival
from mooring.simulator.traces import read_trace


def read(text: str, **columns: str) -> list[Arrival]:
    return read_trace(text.strip().splitlines(keepends=True), "trace.csv", columns)


def test_a_row_is_a_pod():
    [arrival] = read(
        """
arrival,duration,name,namespace,priority,labels,owner,cpu,memory,nvidia.com/gpu,comment
12.5,600,web-1,shop,100,app=web;tier=front,web,500m,2Gi,1,a note
"""
    )
    pod = arrival.pod
    assert (arrival.at, arrival.duration, pod.key, pod.priority) == (12.5, 600.0, "shop/web-1", 100)
    assert pod.labels == {"app": "web", "tier": "front"}
    assert pod.requests.amounts == {"cpu": 500, "memory": 2 * 2**30, "nvidia.com/gpu": 1}
    assert pod.metadata.owner_references[0].uid == "shop/web"


def test_what_is_left_out_has_defaults():
    first, second = read("arrival\n0\n3\n")
    assert [first.pod.key, second.pod.key] == ["default/pod-1", "default/pod-2"]
    assert (first.duration, first.pod.spec.priority, first.pod.requests.amounts) == (None, None, {})


def test_columns_may_have_other_names():
    [arrival] = read("submit_time,plan_cpu\n7,2\n", arrival="submit_time", cpu="plan_cpu")
    assert (arrival.at, arrival.pod.request("cpu")) == (7.0, 2000)


def test_pods_that_request_the_same_share_their_spec():
    first, second, third = read("arrival,cpu\n0,1\n1,1\n2,2\n")
    assert first.pod.spec is second.pod.spec
    assert first.pod.spec is not third.pod.spec


BAD = {
    "an arrival that is no number": (
        "arrival\nsoon\n",
        'column "arrival" (line 2)',
        "must be a number of seconds or a timestamp such as",
    ),
    "no arrival": ("arrival,cpu\n,1\n", 'column "arrival" (line 2)', "is empty"),
    "a negative duration": ("arrival,duration\n0,1\n0,-3\n", 'column "duration" (line 3)', "0 or more, got '-3'"),
    "a duration without end": ("arrival,duration\n0,inf\n", 'column "duration" (line 2)', "got 'inf'"),
    "a quantity that is none": ("arrival,cpu\n0,many\n", 'column "cpu" (line 2)', "is not a quantity"),
    "a negative quantity": ("arrival,cpu\n0,-1\n", 'column "cpu" (line 2)', "must not be negative"),
    "labels that are no pairs": ("arrival,labels\n0,web\n", 'column "labels" (line 2)', "key=value pairs"),
    "a priority that is no whole number": ("arrival,priority\n0,1.5\n", 'column "priority" (line 2)', "got '1.5'"),
    "two pods of one name": ("arrival,name\n0,web\n1,web\n", 'column "name" (line 3)', 'two pods "default/web"'),
    "no column of arrivals": ("start,cpu\n0,1\n", "arrival", "--column arrival=NAME (found: start, cpu)"),
}


@pytest.mark.parametrize(("text", "where", "why"), BAD.values(), ids=BAD.keys())
def test_a_bad_trace_names_line_and_column(text, where, why):
    with pytest.raises(OperatorMistake) as raised:
        read(text)
    assert where in str(raised.value)
    assert why in str(raised.value)


def test_all_bad_rows_are_reported_at_once():
    with pytest.raises(OperatorMistake) as raised:
        read("arrival,cpu\n0,x\n1,2\ny,1\n")
    assert [problem.line for problem in raised.value.problems] == [2, 4]


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(OperatorMistake, match=r'the file has no column "submit"\. Did you mean "submit_time"'):
        read("submit_time\n0\n", arrival="submit")


def test_an_empty_trace_is_refused():
    with pytest.raises(OperatorMistake, match="has no rows"):
        read("arrival\n")
