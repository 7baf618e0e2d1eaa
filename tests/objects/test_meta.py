"""Kinds and their paths, and the declaration of one's own."""

from __future__ import annotations

import msgspec
import pytest

from mooring.objects import CustomResource, Kind, Node, Pod
from mooring.objects.wire import Wire
from mooring.testing import a_node_object, a_pod

DEPLOYMENTS = Kind("apps", "v1", "Deployment", "deployments")

PATHS = {
    "/api/v1/pods": Pod.KIND.path(),
    "/api/v1/namespaces/shop/pods": Pod.KIND.path("shop"),
    "/api/v1/namespaces/shop/pods/web-0": Pod.KIND.path("shop", "web-0"),
    "/api/v1/namespaces/shop/pods/web-0/binding": Pod.KIND.path("shop", "web-0", "binding"),
    "/api/v1/nodes/node-1/status": Node.KIND.path(None, "node-1", "status"),
    "/api/v1/nodes/node-1": Node.KIND.path("ignored", "node-1"),
    "/apis/apps/v1/namespaces/shop/deployments": DEPLOYMENTS.path("shop"),
}


@pytest.mark.parametrize(("expected", "path"), PATHS.items(), ids=PATHS.keys())
def test_paths_are_the_apis(expected, path):
    assert path == expected


def test_a_kind_is_named_as_kubectl_names_it():
    assert (Pod.KIND.name, Pod.KIND.api_version) == ("pods", "v1")
    assert (DEPLOYMENTS.name, DEPLOYMENTS.api_version) == ("deployments.apps", "apps/v1")


class QuotaSpec(Wire):
    most_pods: int


class Quota(CustomResource, group="example.com", version="v1alpha1", plural="quotas", scope="Cluster"):
    spec: QuotaSpec


class Plain(CustomResource, group="example.com", version="v1"):
    pass


class Renamed(CustomResource, group="example.com", version="v1", kind="Other"):
    pass


def test_a_class_statement_declares_a_kind():
    assert Kind("example.com", "v1alpha1", "Quota", "quotas", namespaced=False) == Quota.KIND
    assert Quota.KIND.path("ignored", "q") == "/apis/example.com/v1alpha1/quotas/q"


def test_what_is_not_given_follows_from_the_class():
    assert Kind("example.com", "v1", "Plain", "plains", namespaced=True) == Plain.KIND
    assert Renamed.KIND.kind == "Other"


def test_a_declared_kind_is_read_from_the_wire():
    quota = msgspec.json.decode(
        b'{"kind": "Quota", "metadata": {"name": "q", "labels": {"a": "b"}}, "spec": {"mostPods": 3, "new": 1}}',
        type=Quota,
    )
    assert (quota.name, quota.labels, quota.spec.most_pods, quota.key) == ("q", {"a": "b"}, 3, "q")


def test_a_field_without_a_default_is_required():
    with pytest.raises(msgspec.ValidationError, match="spec"):
        msgspec.convert({"metadata": {"name": "q"}}, Quota)


def test_an_object_knows_its_key():
    assert a_pod("web-0", namespace="shop").key == "shop/web-0"
    assert a_node_object("node-1").key == "node-1"


def test_what_is_written_leaves_defaults_out():
    assert msgspec.to_builtins(Quota(spec=QuotaSpec(most_pods=1))) == {"metadata": {}, "spec": {"mostPods": 1}}
