"""The rollout of a Deployment: every step stays within its limits, and it ends."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import force_setattr
from tests.simulated.builders import NOW, TEMPLATE, a_deployment, a_replica_set

from mooring.base.clock import timestamp
from mooring.simulated.controllers.deployment_status import deployment_status
from mooring.simulated.controllers.deployments import (
    HASH_LABEL,
    REVISION,
    is_complete,
    next_step,
    split,
    surge_and_unavailable,
)
from mooring.simulated.controllers.pod_templates import template_hash
from mooring.simulated.controllers.workload_records import Deployment, ReplicaSet
from mooring.simulated.records import Document


def with_image(image: str) -> Document:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["image"] = image
    return template


OLD = with_image("nginx:1.26")


def an_old(name: str = "old", replicas: int = 3, available: int | None = None, **more: Any) -> ReplicaSet:
    annotations = {REVISION: more.pop("revision", "1")}
    return a_replica_set(name, replicas, available, template=OLD, annotations=annotations, **more)


def a_new(replicas: int = 3, available: int | None = None, **more: Any) -> ReplicaSet:
    annotations = {REVISION: more.pop("revision", "2")}
    return a_replica_set("new", replicas, available, annotations=annotations, **more)


def sizes(step) -> dict[str, int]:
    return {scaling.replica_set.name: scaling.replicas for scaling in step.scale}


class TestTheNewReplicaSet:
    def test_is_made_from_the_template_with_its_hash(self):
        step = next_step(a_deployment("web", replicas=3), [], 0)

        assert step.create is not None
        hashed = step.create["metadata"]["labels"][HASH_LABEL]
        assert step.create["metadata"]["name"] == f"web-{hashed}"
        assert step.create["spec"]["selector"]["matchLabels"] == {"app": "web", HASH_LABEL: hashed}
        assert step.create["spec"]["template"]["metadata"]["labels"] == {"app": "web", HASH_LABEL: hashed}
        assert step.create["spec"]["replicas"] == 3
        assert (step.revision, step.create["metadata"]["annotations"][REVISION]) == ("1", "1")

    def test_is_known_by_its_template(self):
        new, old = split(a_deployment(), [an_old(), a_new()])
        assert new is not None
        assert (new.name, [each.name for each in old]) == ("new", ["old"])

    def test_is_known_by_its_hash_where_the_server_filled_in_the_template(self):
        filled_in = with_image("nginx:1.27") | {"filledIn": True}
        labels = {HASH_LABEL: template_hash(TEMPLATE)}
        new, _ = split(a_deployment(), [a_replica_set("new", template=filled_in, labels=labels)])
        assert new is not None

    def test_gets_a_new_number_when_an_old_template_comes_back(self):
        step = next_step(a_deployment(replicas=3), [an_old(revision="5"), a_new(revision="2")], 0)
        assert step.revision == "6"

    def test_has_another_name_after_a_collision(self):
        assert template_hash(TEMPLATE) != template_hash(TEMPLATE, 1)


SHARES = {
    "the default rounds surge up and unavailable down": (10, {}, (3, 2)),
    "one replica is replaced with a surge": (1, {}, (1, 0)),
    "numbers are numbers": (10, {"maxSurge": 1, "maxUnavailable": 0}, (1, 0)),
    "nothing of both would never end": (3, {"maxSurge": 0, "maxUnavailable": "10%"}, (0, 1)),
}


@pytest.mark.parametrize(("replicas", "rolling", "expected"), SHARES.values(), ids=SHARES.keys())
def test_surge_and_unavailable(replicas, rolling, expected):
    strategy = {"type": "RollingUpdate", "rollingUpdate": rolling}
    assert surge_and_unavailable(a_deployment(replicas=replicas, strategy=strategy)) == expected


class TestARollout:
    def test_begins_with_as_many_new_replicas_as_the_surge_allows(self):
        step = next_step(a_deployment(replicas=4), [an_old(replicas=4)], 4)
        assert step.create is not None
        assert step.create["spec"]["replicas"] == 1

    def test_takes_old_replicas_away_as_availability_allows(self):
        step = next_step(a_deployment(replicas=4), [an_old(replicas=4), a_new(1, 0)], 4)
        assert sizes(step) == {"old": 3}

    def test_takes_unhealthy_old_replicas_away_first(self):
        sick = an_old("sick", replicas=2, available=0, created_at=NOW + 1)
        well = an_old("well", replicas=2)
        step = next_step(a_deployment(replicas=4), [well, sick, a_new(1, 1)], 4)
        assert sizes(step)["sick"] == 0

    def test_scales_with_the_deployment_when_nothing_rolls(self):
        assert sizes(next_step(a_deployment(replicas=7), [a_new(3)], 0)) == {"new": 7}
        assert sizes(next_step(a_deployment(replicas=0), [a_new(3)], 0)) == {"new": 0}

    def test_that_recreates_waits_for_the_last_old_pod(self):
        owner = a_deployment(replicas=3, strategy={"type": "Recreate"})

        assert sizes(next_step(owner, [an_old(replicas=3), a_new(0)], 3)) == {"old": 0}
        assert sizes(next_step(owner, [an_old(replicas=0), a_new(0)], 1)) == {}
        assert sizes(next_step(owner, [an_old(replicas=0), a_new(0)], 0)) == {"new": 3}

    def test_that_is_paused_makes_nothing_new_but_scales(self):
        step = next_step(a_deployment(replicas=5, paused=True), [an_old(replicas=3)], 3)
        assert step.create is None
        assert sizes(step) == {"old": 5}

    def test_forgets_empty_replica_sets_beyond_its_history(self):
        old = [an_old(f"old-{index}", replicas=0, revision=str(index)) for index in range(1, 5)]
        step = next_step(a_deployment(replicas=3, history=2), [*old, a_new(3, revision="9")], 0)
        assert [each.name for each in step.clean_up] == ["old-1", "old-2"]


class Cluster:
    """Replica sets that follow what a deployment decides, with pods that become available at their own pace."""

    def __init__(self, owner: Deployment, owned: list[ReplicaSet]) -> None:
        self.owner = owner
        self.owned = owned

    def step(self) -> bool:
        """Carry out one step; False when there was none."""
        step = next_step(self.owner, self.owned, sum(each.status.replicas for each in split(self.owner, self.owned)[1]))
        if step.create is not None:
            created = msgspec.convert(step.create, ReplicaSet)
            force_setattr(created.metadata, "uid", created.name)
            self.owned.append(created)
        for scaling in step.scale:
            force_setattr(scaling.replica_set.spec, "replicas", scaling.replicas)
        for replica_set, stale in step.annotate:
            force_setattr(replica_set.metadata, "annotations", {**replica_set.metadata.annotations, **stale})
        return bool(step.create or step.scale)

    def pods_move(self, pace: int) -> bool:
        """Surplus pods go at once; missing ones come, at most `pace` of each set become available."""
        moved = False
        for each in self.owned:
            now_there = each.spec.replicas
            available = min(now_there, min(each.status.available_replicas, now_there) + pace)
            moved |= (each.status.replicas, each.status.available_replicas) != (now_there, available)
            force_setattr(each.status, "replicas", now_there)
            force_setattr(each.status, "available_replicas", available)
        return moved

    @property
    def wanted(self) -> int:
        return sum(each.spec.replicas for each in self.owned)

    @property
    def available(self) -> int:
        return sum(min(each.status.available_replicas, each.spec.replicas) for each in self.owned)


amounts = st.one_of(st.integers(0, 6), st.integers(0, 100).map(lambda percent: f"{percent}%"))
strategies = st.one_of(
    st.just({"type": "Recreate"}),
    st.builds(
        lambda surge, gone: {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": gone}},
        amounts,
        amounts,
    ),
)
starts = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=4)


@given(st.integers(0, 15), strategies, starts, st.booleans(), st.integers(1, 4))
def test_a_rollout_converges_from_any_start(replicas, strategy, old, has_new, pace):
    owner = a_deployment(replicas=replicas, strategy=strategy)
    owned = [an_old(f"old-{index}", size, min(size, up)) for index, (size, up) in enumerate(old)]
    cluster = Cluster(owner, owned + ([a_new(1, 0)] if has_new else []))

    for _ in range(500):
        if not cluster.step() and not cluster.pods_move(pace):
            break

    new, others = split(owner, cluster.owned)
    assert new is not None
    assert is_complete(owner, new, cluster.owned)
    assert all(each.spec.replicas == 0 for each in others)


@given(st.integers(1, 15), amounts, amounts, st.integers(1, 4))
def test_a_rolling_update_stays_within_its_bounds(replicas, surge, unavailable, pace):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    owner = a_deployment(replicas=replicas, strategy=strategy)
    most, fewest = surge_and_unavailable(owner)
    cluster = Cluster(owner, [an_old(replicas=replicas)])

    while cluster.step() or cluster.pods_move(pace):
        assert cluster.wanted <= replicas + most
        assert cluster.available >= replicas - fewest


def conditions(status: Document) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in status["conditions"]}


class TestTheStatus:
    def test_counts_over_all_replica_sets(self):
        status = deployment_status(a_deployment(replicas=4), [an_old(replicas=2), a_new(3, 1, running=3)], NOW)
        assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (5, 3, 3)
        assert status["unavailableReplicas"] == 2

    def test_of_a_finished_rollout_reports_it(self):
        status = deployment_status(a_deployment(replicas=3), [a_new(3)], NOW)
        assert conditions(status) == {
            "Available": ("True", "MinimumReplicasAvailable"),
            "Progressing": ("True", "NewReplicaSetAvailable"),
        }

    def test_of_a_rollout_in_progress_reports_it(self):
        status = deployment_status(a_deployment(replicas=3), [a_new(3, 1)], NOW)
        assert conditions(status) == {
            "Available": ("False", "MinimumReplicasUnavailable"),
            "Progressing": ("True", "NewReplicaSetCreated"),
        }

    @pytest.mark.parametrize(
        ("seconds", "expected"),
        [(599, ("True", "ReplicaSetUpdated")), (600, ("False", "ProgressDeadlineExceeded"))],
        ids=["within its deadline", "beyond it"],
    )
    def test_of_a_rollout_that_stands_still(self, seconds, expected):
        before = {
            "observedGeneration": 1,
            "replicas": 1,
            "updatedReplicas": 1,
            "availableReplicas": 1,
            "conditions": [
                {
                    "type": "Progressing",
                    "status": "True",
                    "reason": "ReplicaSetUpdated",
                    "message": 'ReplicaSet "new" is progressing.',
                    "lastUpdateTime": timestamp(NOW),
                }
            ],
        }
        status = deployment_status(a_deployment(replicas=3, status=before), [a_new(3, 1)], NOW + seconds)
        assert conditions(status)["Progressing"] == expected
