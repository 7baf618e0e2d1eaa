"""The custom resources of community plugins: their definitions can be installed."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mooring.framework.definitions import definition_of
from mooring.framework.registry import all_object_types
from mooring.objects import CustomResource
from mooring.plugins.catalogue import catalogue

KINDS = [
    kind
    for kind in all_object_types(entry for entry in catalogue() if entry.source == "community")
    if issubclass(kind, CustomResource)
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_it_can_be_made_a_definition(kind):
    definition = definition_of(kind)
    assert definition["metadata"]["name"] == kind.KIND.name


def the_definition(name: str) -> dict[str, Any]:
    [kind] = [kind for kind in KINDS if kind.KIND.kind == name]
    spec: dict[str, Any] = definition_of(kind)["spec"]
    return spec


SHORT_NAMES = {
    "PodGroup": ["pg", "pgs"],
    "ElasticQuota": ["eq", "eqs"],
    "NodeResourceTopology": ["node-res-topo"],
    "AppGroup": ["ag"],
    "NetworkTopology": ["nt"],
    "SeccompProfile": ["sp"],
}


@pytest.mark.parametrize(("kind", "names"), SHORT_NAMES.items())
def test_kubectl_knows_the_short_names_of_the_originals(kind, names):
    assert the_definition(kind)["names"]["shortNames"] == names


STATUS_SUBRESOURCES = {"PodGroup": True, "ElasticQuota": True, "AppGroup": False, "NetworkTopology": False}


@pytest.mark.parametrize(("kind", "has_one"), STATUS_SUBRESOURCES.items())
def test_status_is_written_as_the_controllers_of_the_originals_write_it(kind, has_one):
    [version] = the_definition(kind)["versions"]
    assert "status" in version["schema"]["openAPIV3Schema"]["properties"]
    assert ("status" in version.get("subresources", {})) == has_one


QUANTITIES: dict[str, list[tuple[str, ...]]] = {
    "PodGroup": [("spec", "minResources")],
    "ElasticQuota": [("spec", "min"), ("spec", "max"), ("status", "used")],
    "NodeResourceTopology": [("zones", "resources", name) for name in ("capacity", "allocatable", "available")],
    "AppGroup": [("spec", "workloads", "dependencies", "minBandwidth")],
    "NetworkTopology": [
        ("spec", "weights", "topologyList", "originList", "costList", name)
        for name in ("bandwidthCapacity", "bandwidthAllocated")
    ],
}
TEXTS = {"500m": True, "2": True, "1.5Gi": True, "-1": True, "2e3": True, ".5": True, "abc": False, "1 Gi": False}


@pytest.mark.parametrize(("kind", "path"), [(kind, path) for kind, paths in QUANTITIES.items() for path in paths])
def test_api_servers_refuse_what_is_no_quantity(kind, path):
    schema = the_definition(kind)["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        schema = schema.get("items", schema)["properties"][name]
    schema = schema.get("additionalProperties", schema)
    assert schema["x-kubernetes-int-or-string"]
    assert {text: bool(re.search(schema["pattern"], text)) for text in TEXTS} == TEXTS


def test_a_profile_has_the_fields_of_the_operator_that_are_not_read_here():
    spec = the_definition("SeccompProfile")["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert spec["properties"].keys() >= {"architectures", "baseProfileName", "defaultAction", "flags", "syscalls"}
    assert spec["properties"]["syscalls"]["items"]["properties"].keys() == {"action", "names", "args", "errnoRet"}


def test_they_are_those_of_scheduler_plugins():
    assert {f"{kind.KIND.name}/{kind.KIND.version}" for kind in KINDS} == {
        "appgroups.appgroup.diktyo.x-k8s.io/v1alpha1",
        "networktopologies.networktopology.diktyo.x-k8s.io/v1alpha1",
        "podgroups.scheduling.x-k8s.io/v1alpha1",
        "elasticquotas.scheduling.x-k8s.io/v1alpha1",
        "noderesourcetopologies.topology.node.k8s.io/v1alpha2",
        "seccompprofiles.security-profiles-operator.x-k8s.io/v1beta1",
    }
