"""A queueing hint that is declared per template returns the same for pods that differ in nothing else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mooring.config.defaults import DEFAULT_PLUGINS
from mooring.framework import Pod
from mooring.framework.events import Action, Hint
from mooring.objects.core import PodCondition
from mooring.objects.meta import OwnerReference
from mooring.objects.placed import placed
from mooring.plugins.catalogue import catalogue
from mooring.testing import a_node_object, a_plugin
from mooring.testing.strategies import LABELS, TAINTS, pods

PLUGINS = {entry.name: a_plugin(entry.cls) for entry in catalogue() if entry.name in DEFAULT_PLUGINS}
HINTS = {
    f"{name} {hint.resource} {hint.action.names()}": hint
    for name, plugin in PLUGINS.items()
    for hint in plugin.events() or ()
    if hint.per_template and hint.test is not None and hint.resource in ("Node", "Pod")
}
few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NODES = st.builds(
    a_node_object,
    cpu=st.sampled_from(["8", "1"]),
    labels=st.sampled_from(LABELS),
    taints=st.lists(st.sampled_from(TAINTS), max_size=2),
    unschedulable=st.booleans(),
)


def other_pods() -> st.SearchStrategy[Any]:
    """Pods on nodes, and pending ones, perhaps nominated."""

    def nominated(pod: Pod, node: str) -> Pod:
        return msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=node))

    return st.builds(placed, pods(), st.just("node-1")) | st.builds(nominated, pods(), st.sampled_from(["", "node-1"]))


def twin(pod: Pod) -> Pod:
    """Of the same template, and otherwise as different as can be."""
    metadata = msgspec.structs.replace(
        pod.metadata,
        name="twin",
        uid="uid-of-twin",
        resource_version="77",
        annotations={"a": "b"},
        owner_references=(OwnerReference(kind="ReplicaSet", name="other", uid="uid-of-other", controller=True),),
    )
    status = msgspec.structs.replace(
        pod.status,
        nominated_node_name="node-2",
        conditions=[PodCondition(type="PodScheduled", status="False", reason="Unschedulable", message="why")],
    )
    return Pod(metadata=metadata, spec=pod.spec, status=status)


def result(hint: Hint, pod: Pod, before: Any, after: Any) -> Any:
    assert hint.test is not None
    try:
        return hint.test(pod, before, after)
    except Exception as error:
        return type(error)


@few
@pytest.mark.parametrize("hint", HINTS.values(), ids=HINTS.keys())
@given(st.data())
def test_pods_of_a_template_get_the_same_result(hint, data):
    pod = data.draw(pods())
    objects = NODES if hint.resource == "Node" else other_pods()
    before = data.draw(objects if hint.action & ~Action.ADD else st.none())
    after = data.draw(objects) if hint.action & ~Action.DELETE else None
    if hint.action & Action.ADD and data.draw(st.booleans()):
        before = None
    elif hint.action & Action.DELETE:
        after = data.draw(st.just(after) | st.none())
    like = twin(pod)
    assert like.template is pod.template
    assert result(hint, like, before, after) == result(hint, pod, before, after)
