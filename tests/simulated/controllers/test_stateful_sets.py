"""Which pods a sync of a StatefulSet creates and deletes, and who owns its claims."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.simulated.builders import NOW, TEMPLATE, a_pod

from mooring.simulated.controllers.controller_history import revision_data
from mooring.simulated.controllers.replica_sets import BURST
from mooring.simulated.controllers.stateful_claims import (
    claim_documents,
    claim_owners,
    is_of_an_earlier_pod,
    is_same_ownership,
)
from mooring.simulated.controllers.stateful_sets import (
    REVISION,
    by_ordinal,
    next_step,
    ordinal_of,
    revision_for,
    stateful_pod,
    stateful_set_status,
)
from mooring.simulated.controllers.workload_records import ControllerRevision, StatefulSet
from mooring.simulated.records import Document, PodRecord, owned_by

CLAIM_TEMPLATE = {"metadata": {"name": "data", "labels": {"tier": "db"}}, "spec": {"accessModes": ["ReadWriteOnce"]}}


def a_stateful_set(replicas: int = 3, **more: Any) -> StatefulSet:
    spec = {
        "replicas": replicas,
        "serviceName": more.pop("service", "web"),
        "selector": {"matchLabels": {"app": "web"}},
        "template": TEMPLATE,
        "updateStrategy": {
            "type": more.pop("update", "RollingUpdate"),
            "rollingUpdate": {"partition": more.pop("partition", 0)},
        },
        **more,
    }
    metadata = {"name": "web", "namespace": "default", "uid": "uid-set", "generation": 2}
    return msgspec.convert({"metadata": metadata, "spec": spec}, StatefulSet)


def a_revision(name: str = "web-new", template: Document = TEMPLATE) -> ControllerRevision:
    document = {"metadata": {"name": name}, "data": revision_data(template), "revision": 1}
    return msgspec.convert(document, ControllerRevision)


def up(ordinal: int, revision: str = "new", **more: Any) -> PodRecord:
    """A pod that runs and is ready."""
    return a_pod(f"web-{ordinal}", ready=True, phase="Running", labels={REVISION: revision}, **more)


def pending(ordinal: int, revision: str = "new") -> PodRecord:
    return a_pod(f"web-{ordinal}", phase="Pending", labels={REVISION: revision})


def going(ordinal: int, revision: str = "new") -> PodRecord:
    return up(ordinal, revision, terminating=True)


def failed(ordinal: int) -> PodRecord:
    return a_pod(f"web-{ordinal}", phase="Failed", labels={REVISION: "new"})


PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}
STEPS: dict[str, tuple[StatefulSet, list[PodRecord], tuple[list[int], list[str]]]] = {
    "the first pod is made first": (a_stateful_set(), [], ([0], [])),
    "the next waits until the one before is ready": (a_stateful_set(), [pending(0)], ([], [])),
    "and then is made": (a_stateful_set(), [up(0)], ([1], [])),
    "a pod that was deleted is made again before the next": (a_stateful_set(), [up(1)], ([0], [])),
    "a name is free only when its pod is gone": (a_stateful_set(), [up(0), going(1)], ([], [])),
    "a pod that failed is removed": (a_stateful_set(2), [failed(0), up(1)], ([], ["web-0"])),
    "ready for long enough counts": (a_stateful_set(minReadySeconds=10), [up(0, ready_at=NOW - 5)], ([], [])),
    "ordinals may start elsewhere": (a_stateful_set(2, ordinals={"start": 5}), [up(5)], ([6], [])),
    "pods before the start go": (a_stateful_set(1, ordinals={"start": 1}), [up(0), up(1)], ([], ["web-0"])),
    "the last goes first": (a_stateful_set(1), [up(0), up(1), up(2)], ([], ["web-2"])),
    "one at a time": (a_stateful_set(1), [up(0), up(1), going(2)], ([], [])),
    "none goes while another is not ready": (a_stateful_set(1), [up(0), pending(1), pending(2)], ([], [])),
    "but the only one that is not ready does": (a_stateful_set(1), [up(0), up(1), pending(2)], ([], ["web-2"])),
    "nothing goes before all that stay are ready": (a_stateful_set(2), [up(0), pending(1), up(2)], ([], [])),
    "a parallel set makes all at once": (a_stateful_set(3, **PARALLEL), [pending(1)], ([0, 2], [])),
    "and removes all at once": (
        a_stateful_set(1, **PARALLEL),
        [pending(0), up(1), going(2), up(3)],
        ([], ["web-3", "web-1"]),
    ),
    "an update begins with the last": (a_stateful_set(), [up(n, "old") for n in range(3)], ([], ["web-2"])),
    "goes on when that is ready": (a_stateful_set(), [up(0, "old"), up(1, "old"), up(2)], ([], ["web-1"])),
    "but not before": (a_stateful_set(**PARALLEL), [up(0, "old"), up(1, "old"), pending(2)], ([], [])),
    "and ends at the partition": (a_stateful_set(partition=2), [up(0, "old"), up(1, "old"), up(2)], ([], [])),
    "a partition counts from the first ordinal": (
        a_stateful_set(2, ordinals={"start": 5}, partition=1),
        [up(5, "old"), up(6, "old")],
        ([], ["web-6"]),
    ),
    "on delete nothing is updated": (a_stateful_set(2, update="OnDelete"), [up(0, "old"), up(1, "old")], ([], [])),
    "a pod of another name is let be": (a_stateful_set(1), [up(0), a_pod("web-x")], ([], [])),
}


@pytest.mark.parametrize(("owner", "pods", "expected"), STEPS.values(), ids=STEPS.keys())
def test_the_next_step(owner, pods, expected):
    step = next_step(owner, pods, "new", NOW)
    assert (list(step.create), [pod.name for pod in step.delete]) == expected


@given(
    st.dictionaries(st.integers(0, 8), st.tuples(st.sampled_from([up, pending]), st.sampled_from(["old", "new"]))),
    st.integers(0, 6),
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from(["OrderedReady", "Parallel"]),
)
def test_from_any_start_the_set_reaches_its_pods_and_its_revision(drawn, replicas, start, partition, management):
    owner = a_stateful_set(replicas, ordinals={"start": start}, partition=partition, podManagementPolicy=management)
    pods = {ordinal: state(ordinal, revision) for ordinal, (state, revision) in drawn.items()}
    for _ in range(200):
        step = next_step(owner, list(pods.values()), "new", NOW)
        assert not set(step.create) & set(pods)
        if management == "OrderedReady":
            assert len(step.create) + len(step.delete) <= 1
        for pod in step.delete:
            del pods[ordinal_of(owner, pod) or 0]
        pods |= {ordinal: pending(ordinal, "old" if ordinal < start + partition else "new") for ordinal in step.create}
        waiting = sorted(ordinal for ordinal, pod in pods.items() if pod.status.phase == "Pending")
        if not step.create and not step.delete and not waiting:
            break
        if waiting:
            pods[waiting[0]] = up(waiting[0], pods[waiting[0]].labels[REVISION])
    assert sorted(pods) == list(owner.ordinals)
    assert all(pods[ordinal].labels[REVISION] == "new" for ordinal in owner.ordinals[partition:])


def test_a_parallel_set_of_any_size_takes_bounded_steps():
    assert len(next_step(a_stateful_set(2**31 - 1, **PARALLEL), [], "new", NOW).create) == BURST


class TestAPod:
    def test_has_the_identity_of_its_ordinal(self):
        pod = stateful_pod(a_stateful_set(), 2, a_revision())

        assert pod["metadata"]["name"] == "web-2"
        assert pod["metadata"]["labels"] == {
            "app": "web",
            "statefulset.kubernetes.io/pod-name": "web-2",
            "apps.kubernetes.io/pod-index": "2",
            REVISION: "web-new",
        }
        assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("web-2", "web")

    def test_is_made_of_the_template_of_its_revision(self):
        old = {"metadata": TEMPLATE["metadata"], "spec": {"containers": [{"name": "app", "image": "nginx:1.26"}]}}
        owner = a_stateful_set(partition=1)
        revisions = [revision_for(owner, ordinal, a_revision("old", old), a_revision()) for ordinal in (0, 1)]

        images = [stateful_pod(owner, 0, each)["spec"]["containers"][0]["image"] for each in revisions]
        assert images == ["nginx:1.26", "nginx:1.27"]

    def test_has_the_volumes_of_its_claims_in_the_place_of_the_templates(self):
        volumes = [{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]
        template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], "volumes": volumes}}
        owner = a_stateful_set(volumeClaimTemplates=[CLAIM_TEMPLATE])

        assert stateful_pod(owner, 1, a_revision(template=template))["spec"]["volumes"] == [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}},
            {"name": "tmp", "emptyDir": {}},
        ]

    def test_has_claims_with_the_labels_of_template_and_selector(self):
        [claim] = claim_documents(a_stateful_set(volumeClaimTemplates=[CLAIM_TEMPLATE]), 1)
        assert claim["metadata"]["name"] == "data-web-1"
        assert claim["metadata"]["labels"] == {"tier": "db", "app": "web"}


KEEP, DROP = "Retain", "Delete"
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "uid-x"}
OWNERS = {
    "everything is kept": (KEEP, KEEP, 0, [OTHER], ["uid-x"]),
    "what we owned is given back": (KEEP, KEEP, 0, owned_by(a_stateful_set()), []),
    "goes with the set": (DROP, KEEP, 0, [OTHER], ["uid-x", "uid-set"]),
    "goes with the set, scaled down or not": (DROP, KEEP, 7, [], ["uid-set"]),
    "goes with the pod that is scaled away": (KEEP, DROP, 7, [], ["uid-web-7"]),
    "stays while its pod does": (KEEP, DROP, 0, [], []),
    "goes with the one or the other": (DROP, DROP, 0, [], ["uid-set"]),
    "with the pod alone once it is scaled away": (DROP, DROP, 7, owned_by(a_stateful_set()), ["uid-web-7"]),
    "another's claim is let be": (DROP, DROP, 0, [OTHER | {"controller": True}], ["uid-x"]),
    "and an earlier set's": (DROP, DROP, 0, [owned_by(a_stateful_set())[0] | {"uid": "before"}], ["before"]),
}


@pytest.mark.parametrize(("deleted", "scaled", "ordinal", "present", "expected"), OWNERS.values(), ids=OWNERS.keys())
def test_whose_a_claim_is(deleted, scaled, ordinal, present, expected):
    owner = a_stateful_set(persistentVolumeClaimRetentionPolicy={"whenDeleted": deleted, "whenScaled": scaled})
    owners = claim_owners(owner, up(ordinal), present)
    assert [each["uid"] for each in owners] == expected
    assert is_same_ownership(owners, claim_owners(owner, up(ordinal), owners))


def test_a_claim_of_a_pod_that_was_scaled_away_is_not_for_its_successor():
    assert is_of_an_earlier_pod(owned_by(up(2)), "web-2")
    assert not is_of_an_earlier_pod(owned_by(a_stateful_set()), "web-2")


class TestTheStatus:
    def test_counts_pods_by_state_and_revision(self):
        owner = a_stateful_set(4, minReadySeconds=10)
        pods = [up(0, "old", ready_at=NOW - 60), up(1, "old", ready_at=NOW), going(2, "old"), pending(3)]

        status = stateful_set_status(owner, pods, "old", "new", 1, NOW)
        assert status == {
            "observedGeneration": 2,
            "replicas": 4,
            "readyReplicas": 3,
            "availableReplicas": 1,
            "currentReplicas": 2,
            "updatedReplicas": 1,
            "currentRevision": "old",
            "updateRevision": "new",
            "collisionCount": 1,
        }

    @pytest.mark.parametrize(("update", "current"), [("RollingUpdate", "new"), ("OnDelete", "old")])
    def test_of_a_finished_update_has_one_revision(self, update, current):
        owner = a_stateful_set(2, update=update)
        status = stateful_set_status(owner, [up(0), up(1)], "old", "new", 0, NOW)
        assert (status["currentRevision"], status["updatedReplicas"]) == (current, 2)


def test_pods_are_known_by_their_ordinals():
    pods = [a_pod("web-10"), a_pod("web-2"), a_pod("web-"), a_pod("db-1"), a_pod("web-1-2")]
    assert sorted(by_ordinal(a_stateful_set(), pods)) == [2, 10]
