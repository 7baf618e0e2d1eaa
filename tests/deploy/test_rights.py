"""Rights follow from the plugins in use, and are never more than kube-scheduler's, but for kinds of one's own."""

from __future__ import annotations

from typing import Any

import pytest
from tests.deploy.configurations import a_configuration, a_file

from mooring.base.documents import written
from mooring.config import LeaderElection, load_configuration
from mooring.deploy.rights import Right, rights_of
from mooring.deploy.rules import rules_of
from mooring.deploy.upstream import beyond_kube_scheduler
from mooring.framework import ClaimWriter, Cycle, Diagnosis, Objects, Plan, Plugin, Pod, PodWriter, WhatIf
from mooring.framework.gates import FeatureGates
from mooring.framework.verdicts import PostFilterRefusal, Refusal
from mooring.objects.workloads import Service
from mooring.plugins.catalogue import catalogue

NO_ELECTION = LeaderElection(leader_elect=False)
NEVER_OFF = ("PrioritySort", "DefaultBinder")


def shown(right: Right) -> str:
    """`patch persistentvolumes`, as people write it."""
    where = f" in {right.namespace}" if right.namespace else ""
    named = f" {right.name}" if right.name else ""
    group = f".{right.group}" if right.group else ""
    return f"{right.verb} {right.resource}{group}{named}{where}"


def rights(configuration: Any, registry: Any = None, **options: Any) -> set[str]:
    options.setdefault("election", NO_ELECTION)
    options.setdefault("serves", False)
    return {shown(right) for right in rights_of(configuration, registry or catalogue(), **options)}


def with_plugin(plugin: type[Plugin], source: str = "test") -> set[str]:
    """What this plugin adds to a scheduler that does nothing but bind."""
    registry = catalogue()
    registry.add(plugin, source)
    alone = a_configuration(registry, disabled=["*"], enabled=NEVER_OFF)
    beside = a_configuration(registry, disabled=["*"], enabled=[*NEVER_OFF, plugin.name])
    return rights(beside, registry) - rights(alone, registry)


BARE = {
    *("list nodes", "watch nodes", "get pods", "list pods", "watch pods", "patch pods/status"),
    *("create events.events.k8s.io", "patch events.events.k8s.io", "create pods/binding"),
    "list events",
}


def test_a_scheduler_that_only_binds_needs_no_more_than_that():
    assert rights(a_configuration(disabled=["*"], enabled=NEVER_OFF)) == BARE


def rights_for_loads(**arguments: Any) -> set[str]:
    """What TargetLoadPacking with these arguments adds."""
    alone = a_configuration(disabled=["*"], enabled=NEVER_OFF)
    file = a_file(disabled=["*"], enabled=[*NEVER_OFF, "TargetLoadPacking"])
    file["profiles"][0]["pluginConfig"] = [{"name": "TargetLoadPacking", "args": arguments}]
    beside = load_configuration(written(file), source="test.yaml", registry=catalogue()).configuration
    return rights(beside) - rights(alone)


LOAD_SOURCES: dict[str, tuple[dict[str, Any], set[str]]] = {
    "the metrics API is listed": ({}, {"list nodes.metrics.k8s.io"}),
    "not beside a load watcher": ({"watcherAddress": "http://watcher:2020"}, set()),
    "not beside Prometheus": ({"metricProvider": {"type": "Prometheus"}}, set()),
    "not beside another API server": ({"metricProvider": {"address": "http://127.0.0.1:8001"}}, set()),
}


@pytest.mark.parametrize(("arguments", "expected"), LOAD_SOURCES.values(), ids=LOAD_SOURCES.keys())
def test_rights_follow_from_where_loads_come_from(arguments: dict[str, Any], expected: set[str]):
    assert rights_for_loads(**arguments) == expected


DISABLED = {
    "without InterPodAffinity namespaces are not read": ("InterPodAffinity", {"list namespaces", "watch namespaces"}),
    "without DefaultPreemption no pod is deleted": (
        "DefaultPreemption",
        {"delete pods", "list poddisruptionbudgets.policy", "watch poddisruptionbudgets.policy"},
    ),
    "without VolumeBinding nothing is written to volumes": (
        "VolumeBinding",
        {
            *("patch persistentvolumes", "patch persistentvolumeclaims"),
            *("list csidrivers.storage.k8s.io", "watch csidrivers.storage.k8s.io"),
            *("list csistoragecapacities.storage.k8s.io", "watch csistoragecapacities.storage.k8s.io"),
        },
    ),
    "without DynamicResources claims are read and not written": (
        "DynamicResources",
        {
            *(f"{verb} resourceclaims.resource.k8s.io" for verb in ("get", "create", "patch", "delete")),
            *("patch resourceclaims/status.resource.k8s.io", "patch resourceclaims/binding.resource.k8s.io"),
        },
    ),
}


@pytest.mark.parametrize(("plugin", "gone"), DISABLED.values(), ids=DISABLED.keys())
def test_what_only_a_disabled_plugin_needed_is_not_granted(plugin, gone):
    assert rights(a_configuration()) - rights(a_configuration(disabled=[plugin])) == gone


def test_with_extended_resources_off_no_claim_is_made():
    gates = FeatureGates({"DRAExtendedResource": False})
    gone = rights(a_configuration()) - rights(a_configuration(), gates=gates)
    assert gone == {"create resourceclaims.resource.k8s.io", "delete resourceclaims.resource.k8s.io"}


class ReadsServices(Plugin):
    def __init__(self, services: Objects[Service]) -> None: ...
    def score(self, pod: Pod, node: Any, cycle: Cycle) -> int:
        return 0


class WritesClaims(Plugin):
    def __init__(self, writer: ClaimWriter) -> None: ...
    def score(self, pod: Pod, node: Any, cycle: Cycle) -> int:
        return 0


class WritesPods(Plugin):
    def __init__(self, writer: PodWriter) -> None: ...
    def score(self, pod: Pod, node: Any, cycle: Cycle) -> int:
        return 0


class Evicts(Plugin):
    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> Plan | Refusal:
        return Plan()


class OnlyRetries(Plugin):
    def post_filter(self, pod: Pod, refused: Diagnosis, what_if: WhatIf) -> PostFilterRefusal:
        return PostFilterRefusal("later", retry_after=1.0)


class Unannotated(Plugin):
    def post_filter(self, pod, refused, what_if):
        return Plan()


CLAIMS = {
    *(f"{verb} resourceclaims.resource.k8s.io" for verb in ("get", "create", "patch", "delete")),
    *("patch resourceclaims/status.resource.k8s.io", "patch resourceclaims/binding.resource.k8s.io"),
}
DECLARED = {
    "a kind that a constructor takes is read": (ReadsServices, {"list services", "watch services"}),
    "a service that writes brings what it writes": (WritesClaims, CLAIMS),
    "a plugin that writes to pods may patch them": (WritesPods, {"patch pods"}),
    "a post_filter that can return a plan evicts": (Evicts, {"delete pods"}),
    "a post_filter that cannot evicts no pods": (OnlyRetries, set()),
    "a post_filter without an annotation may evict": (Unannotated, {"delete pods"}),
}


@pytest.mark.parametrize(("plugin", "more"), DECLARED.values(), ids=DECLARED.keys())
def test_what_a_plugin_needs_is_granted(plugin, more):
    assert with_plugin(plugin) == more


def test_kube_scheduler_may_do_all_that_the_default_plugins_cannot_do_without():
    rights = rights_of(a_configuration(), catalogue())
    assert beyond_kube_scheduler(rights) == ()
    assert [shown(right) for right in rights if right.is_optional] == ["list events"]


def test_pod_groups_are_read_and_reported_with_their_gate_alone():
    """Gang scheduling, 9.3."""
    gates = FeatureGates({"GenericWorkload": True})
    added = {"list podgroups.scheduling.k8s.io", "watch podgroups.scheduling.k8s.io"}
    status = "patch podgroups/status.scheduling.k8s.io"
    before = rights(a_configuration())
    assert rights(a_configuration(), gates=gates) - before == {*added, status}
    only_reads = rights(a_configuration(), gates=gates, only_reads=True)
    assert added <= only_reads
    assert status not in only_reads


def test_kube_scheduler_may_do_all_that_pod_groups_need():
    """Gang scheduling, 9.3."""
    gates = FeatureGates({"GenericWorkload": True, "GangScheduling": True})
    assert beyond_kube_scheduler(rights_of(a_configuration(), catalogue(), gates=gates)) == ()
    with_claims = FeatureGates({"GenericWorkload": True, "GangScheduling": True, "DRAWorkloadResourceClaims": True})
    assert rights(a_configuration(), gates=with_claims) == rights(a_configuration(), gates=gates)


def test_a_custom_kind_is_all_that_kube_scheduler_may_not_read():
    configuration = a_configuration(enabled=["NodeCRDResourceFit"])
    beyond = beyond_kube_scheduler(rights_of(configuration, catalogue()))
    resource = "clusterscopedresources.scheduling.sigs.k8s.io"
    assert {shown(right) for right in beyond} == {f"list {resource}", f"watch {resource}"}


def test_kube_scheduler_may_not_patch_pods():
    registry = catalogue()
    registry.add(WritesPods, "test")
    beyond = beyond_kube_scheduler(rights_of(a_configuration(registry, enabled=["WritesPods"]), registry))
    assert [(shown(right), right.needed_by) for right in beyond] == [("patch pods", frozenset({"WritesPods"}))]


def test_a_lease_is_granted_by_name_except_to_create_it():
    election = LeaderElection(resource_name="mine", resource_namespace="there")
    more = rights(a_configuration(), election=election) - rights(a_configuration())
    leases = "leases.coordination.k8s.io"
    assert more == {
        *(f"create {leases} in there", f"get {leases} mine in there", f"update {leases} mine in there"),
        "create events in there",
    }


def test_shadow_mode_only_reads():
    verbs = {
        right.verb
        for right in rights_of(a_configuration(), catalogue(), election=NO_ELECTION, serves=False, only_reads=True)
    }
    assert verbs == {"list", "watch"}


def test_rules_grant_exactly_the_rights():
    rights = rights_of(a_configuration(enabled=["NodeCRDResourceFit"]), catalogue())
    granted = {
        (namespace, rule.group, resource, verb, name)
        for namespace, rules in rules_of(rights).items()
        for rule in rules
        for resource in rule.resources
        for verb in rule.verbs
        for name in rule.names or ("",)
    }
    assert granted == {(each.namespace, each.group, each.resource, each.verb, each.name) for each in rights}
