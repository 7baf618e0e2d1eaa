"""QOSSort: priority, then quality of service, then waiting time."""

from __future__ import annotations

from mooring.framework import QueuedPod
from mooring.objects.core import Container, Pod, PodSpec, ResourceRequirements
from mooring.plugins.community.qos_sort import QOSSort
from mooring.testing import a_plugin

ALL = {"cpu": "1", "memory": "1Gi"}


def queued(priority=0, requests=None, limits=None, since=0.0):
    container = Container(resources=ResourceRequirements(requests=requests or {}, limits=limits or {}))
    return QueuedPod(Pod(spec=PodSpec(containers=(container,), priority=priority)), since)


def first(*pods):
    return min(pods, key=a_plugin(QOSSort).sort_key)


def test_priority_comes_before_quality_of_service():
    urgent, guaranteed = queued(priority=1), queued(requests=ALL, limits=ALL)
    assert first(guaranteed, urgent) is urgent


def test_guaranteed_comes_before_burstable_before_best_effort():
    best_effort, burstable, guaranteed = queued(), queued(requests=ALL), queued(requests=ALL, limits=ALL, since=9)
    assert first(best_effort, burstable, guaranteed) is guaranteed
    assert first(best_effort, burstable) is burstable


def test_among_equals_the_one_that_waits_longer_is_first():
    later, earlier = queued(since=2), queued(since=1)
    assert first(later, earlier) is earlier
