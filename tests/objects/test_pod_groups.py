"""PodGroups, Workloads and the group of a pod: what is read of the wire, and what is written (gang scheduling, 2)."""

from __future__ import annotations

import json

import msgspec
import pytest

from mooring.objects import Pod
from mooring.objects.pod_groups import PodGroup, Workload
from mooring.testing import a_pod, a_pod_group

GANG = {
    "apiVersion": "scheduling.k8s.io/v1alpha2",
    "kind": "PodGroup",
    "metadata": {"name": "training", "namespace": "default"},
    "spec": {
        "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        "schedulingPolicy": {"gang": {"minCount": 4}},
        "schedulingConstraints": {"topology": [{"key": "rack"}]},
        "resourceClaims": [{"name": "link", "resourceClaimTemplateName": "links"}],
        "disruptionMode": "PodGroup",
        "priority": 7,
    },
    "status": {"conditions": [{"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}]},
}


def test_a_gang_is_read_whole():
    group = msgspec.convert(GANG, PodGroup)
    assert (group.min_count, group.topology_key, group.priority, group.is_disrupted_as_a_whole) == (4, "rack", 7, True)
    assert group.spec.resource_claims[0].resource_claim_template_name == "links"
    condition = group.condition("PodGroupScheduled")
    assert condition is not None
    assert condition.reason == "Unschedulable"
    assert json.loads(msgspec.json.encode(group))["spec"] == GANG["spec"]


def test_a_basic_group_needs_no_number_of_pods_and_has_priority_0():
    group = msgspec.convert({"spec": {"schedulingPolicy": {"basic": {}}}}, PodGroup)
    assert (group.min_count, group.topology_key, group.priority, group.is_disrupted_as_a_whole) == (
        None,
        None,
        0,
        False,
    )


def test_both_kinds_are_served_by_v1alpha2():
    assert PodGroup.KIND.path("team", "a", "status") == (
        "/apis/scheduling.k8s.io/v1alpha2/namespaces/team/podgroups/a/status"
    )
    assert Workload.KIND.path("team", "a") == "/apis/scheduling.k8s.io/v1alpha2/namespaces/team/workloads/a"


GROUPS_OF_PODS = {
    "none": ({}, None),
    "a group without a name": ({"schedulingGroup": {}}, None),
    "a group": ({"schedulingGroup": {"podGroupName": "training"}}, "training"),
}


@pytest.mark.parametrize(("spec", "name"), GROUPS_OF_PODS.values(), ids=GROUPS_OF_PODS.keys())
def test_a_pod_names_its_group(spec, name):
    assert msgspec.convert({"spec": spec}, Pod).pod_group_name == name


def test_pods_of_different_groups_are_of_different_templates():
    assert a_pod("a", group="x").template is a_pod("b", group="x").template
    assert a_pod("a", group="x").template is not a_pod("a", group="y").template


def test_the_builder_makes_gangs_and_basic_groups():
    assert a_pod_group(min_count=3, topology_key="rack").min_count == 3
    assert a_pod_group().spec.scheduling_policy.basic is not None
