"""What the scheduler may not do by docs/security.md, whatever of kube-scheduler's plugins is configured."""

from __future__ import annotations

from tests.deploy.configurations import a_configuration

from mooring.config import LeaderElection
from mooring.deploy.rights import Right, rights_of
from mooring.framework.gates import FeatureGates
from mooring.plugins.catalogue import catalogue

WRITES = ("create", "update", "patch", "delete", "deletecollection")
WRITTEN = {
    ("", "pods"): {"delete"},
    ("", "pods/binding"): {"create"},
    ("", "pods/status"): {"patch"},
    ("", "persistentvolumes"): {"patch"},
    ("", "persistentvolumeclaims"): {"patch"},
    ("resource.k8s.io", "resourceclaims"): {"create", "patch", "delete"},
    ("resource.k8s.io", "resourceclaims/status"): {"patch"},
    ("resource.k8s.io", "resourceclaims/binding"): {"patch"},
    ("events.k8s.io", "events"): {"create", "patch"},
    ("authentication.k8s.io", "tokenreviews"): {"create"},
    ("authorization.k8s.io", "subjectaccessreviews"): {"create"},
}
"""Everywhere. A change that needs more makes this page longer."""


def of_a_scheduler(*, only_reads: bool = False) -> tuple[Right, ...]:
    return rights_of(
        a_configuration(),
        catalogue(),
        gates=FeatureGates(),
        election=LeaderElection(leader_elect=not only_reads, resource_name="mooring"),
        serves=not only_reads,
        only_reads=only_reads,
    )


def test_what_it_writes_is_what_the_page_lists():
    written: dict[tuple[str, str], set[str]] = {}
    for right in of_a_scheduler():
        if right.verb in WRITES and not right.namespace:
            written.setdefault((right.group, right.resource), set()).add(right.verb)
    assert written == WRITTEN


def test_in_a_namespace_it_writes_its_own_lease_and_events_about_it():
    own = {(right.resource, right.verb, right.namespace, right.name) for right in of_a_scheduler() if right.namespace}
    assert own == {
        ("leases", "create", "kube-system", ""),  # a name cannot be required before the object exists
        ("leases", "get", "kube-system", "mooring"),
        ("leases", "update", "kube-system", "mooring"),
        ("events", "create", "kube-system", ""),
    }


def test_it_reads_no_secrets_and_no_config_maps():
    assert not {right.resource for right in of_a_scheduler()} & {"secrets", "configmaps", "serviceaccounts"}


def test_a_shadow_only_reads():
    assert {right.verb for right in of_a_scheduler(only_reads=True)} <= {"get", "list", "watch"}
