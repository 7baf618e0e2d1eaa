"""NodeDeclaredFeatures: what a pod needs, which nodes have it, and what requeues a refused pod."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import force_setattr
from tests.plugins.verdicts import requeues, verdict

from mooring.framework import UNRESOLVABLE, Skip
from mooring.objects.core import Container, ContainerRestartRule
from mooring.objects.placed import placed
from mooring.plugins.default.node_declared_features import (
    NOT_DECLARED,
    RESTART_ALL,
    USER_NAMESPACES_ON_HOST_NETWORK,
    NodeDeclaredFeatures,
)
from mooring.testing import Services, a_cluster, a_cycle, a_node_object, a_plugin, a_pod

REFUSED = (UNRESOLVABLE, (NOT_DECLARED,))


def a_needy_pod(*, restarts_all: str = "", host_network: bool = False, host_users: bool | None = None, uid: str = "me"):
    """`restarts_all` selects which containers have the rule: "containers" or "init_containers"."""
    pod = a_pod(uid=uid)
    if restarts_all:
        force_setattr(
            pod.spec,
            restarts_all,
            (Container(restart_policy_rules=(ContainerRestartRule(action="RestartAllContainers"),)),),
        )
    force_setattr(pod.spec, "host_network", host_network)
    force_setattr(pod.spec, "host_users", host_users)
    return pod


def a_declaring_node(*features: str):
    node = a_node_object()
    force_setattr(node.status, "declared_features", features)
    return node


RESTARTS = a_needy_pod(restarts_all="containers")
NAMESPACED = a_needy_pod(host_network=True, host_users=False)
BOTH = a_needy_pod(restarts_all="containers", host_network=True, host_users=False)
CASES = {
    "a restart rule for all containers": (RESTARTS, [], REFUSED),
    "an init container's rule, too": (a_needy_pod(restarts_all="init_containers"), [], REFUSED),
    "where it is declared": (RESTARTS, [RESTART_ALL], None),
    "where something else is declared": (RESTARTS, ["SomethingElse", USER_NAMESPACES_ON_HOST_NETWORK], REFUSED),
    "user namespaces on the host's network": (NAMESPACED, [], REFUSED),
    "where that is declared": (NAMESPACED, [USER_NAMESPACES_ON_HOST_NETWORK], None),
    "everything must be declared": (BOTH, [RESTART_ALL], REFUSED),
    "and is": (BOTH, ["Another", RESTART_ALL, USER_NAMESPACES_ON_HOST_NETWORK], None),
}


def cluster_of(node):
    cluster = a_cluster()
    cluster.state.set_node(node)
    return cluster


@pytest.mark.parametrize(("pod", "declared", "refusal"), CASES.values(), ids=CASES.keys())
def test_what_nodes_must_declare(pod, declared, refusal):
    plugin, cluster = a_plugin(NodeDeclaredFeatures), cluster_of(a_declaring_node(*declared))
    assert verdict(plugin.filter(pod, cluster.node("node"), a_cycle(pod))) == refusal
    [rejections] = plugin.filter_nodes(pod, cluster.nodes, a_cycle(pod))
    assert (rejections.mask.tolist(), rejections.unresolvable) == ([refusal is not None], True)


UNDEMANDING = {
    "a plain pod": a_pod(),
    "the host's network alone": a_needy_pod(host_network=True),
    "the host's users on the host's network": a_needy_pod(host_network=True, host_users=True),
    "a user namespace alone": a_needy_pod(host_users=False),
}


@pytest.mark.parametrize("pod", UNDEMANDING.values(), ids=UNDEMANDING.keys())
def test_a_pod_that_needs_nothing_is_not_looked_at(pod):
    assert isinstance(a_plugin(NodeDeclaredFeatures).pre_filter(pod, a_cycle(pod)), Skip)


def test_the_rule_is_read_as_the_api_writes_it():
    container = msgspec.convert(
        {"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In"}}]},
        Container,
    )
    assert container.restart_policy_rules == (ContainerRestartRule(action="RestartAllContainers"),)


def test_with_its_gate_off_it_does_nothing():
    plugin = a_plugin(NodeDeclaredFeatures, Services(gates={"NodeDeclaredFeatures": False}))
    cluster = cluster_of(a_declaring_node())
    assert isinstance(plugin.pre_filter(BOTH, a_cycle(BOTH)), Skip)
    assert plugin.filter(BOTH, cluster.node("node"), a_cycle(BOTH)) is None
    assert list(plugin.filter_nodes(BOTH, cluster.nodes, a_cycle(BOTH))) == []
    assert list(plugin.events()) == []


WAKING = {
    "a node is added": (None, a_declaring_node(), True),
    "a node declares more": (a_declaring_node(), a_declaring_node("Something"), True),
    "a node's labels change": (a_node_object(), a_node_object(labels={"a": "b"}), False),
    "the pod itself needs less": (BOTH, RESTARTS, True),
    "the pod itself changes otherwise": (BOTH, BOTH, False),
    "another pod needs less": (
        a_needy_pod(restarts_all="containers", uid="other"),
        a_needy_pod(uid="other"),
        False,
    ),
    "a placed pod changes": (placed(BOTH, "node"), placed(a_pod(uid="me"), "node"), False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    assert requeues(a_plugin(NodeDeclaredFeatures), BOTH, before, after) is expected
