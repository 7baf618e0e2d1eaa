"""The custom resources of community plugins: their definitions can be installed."""

from __future__ import annotations

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


def test_they_are_those_of_scheduler_plugins():
    assert {f"{kind.KIND.name}/{kind.KIND.version}" for kind in KINDS} == {
        "appgroups.appgroup.diktyo.x-k8s.io/v1alpha1",
        "networktopologies.networktopology.diktyo.x-k8s.io/v1alpha1",
        "podgroups.scheduling.x-k8s.io/v1alpha1",
        "elasticquotas.scheduling.x-k8s.io/v1alpha1",
        "noderesourcetopologies.topology.node.k8s.io/v1alpha2",
        "seccompprofiles.security-profiles-operator.x-k8s.io/v1beta1",
    }
