"""StatefulSets create pods and claims in order, on a running cluster."""

from __future__ import annotations

from typing import Any

import pytest
from tests.simulated.conftest import POD, Bench

from mooring.base.clock import ManualClock
from mooring.objects.storage import PersistentVolumeClaim
from mooring.simulated.controllers.stateful_sets import REVISION
from mooring.simulated.controllers.workload_records import ControllerRevision, StatefulSet

STATEFUL_SET, CLAIM = StatefulSet.KIND, PersistentVolumeClaim.KIND
CLAIMS = [
    {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
]


def the_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}


def names(bench: Bench, plural: str = "pods") -> list[str]:
    return sorted(each.name for each in bench.seen.of(plural).values())


def images(bench: Bench) -> dict[str, str]:
    return {pod.name: pod.spec.containers[0].image for pod in bench.seen.pods if not pod.is_terminating}


def status(bench: Bench) -> Any:
    """The set's status, once it is about its present generation."""
    owner = bench.seen.of("statefulsets").get("default/web")
    return owner.status if owner and owner.status.observed_generation == owner.metadata.generation else None


def is_settled(bench: Bench, replicas: int = 3) -> bool:
    now = status(bench)
    return (
        now is not None
        and (now.replicas, now.available_replicas, now.updated_replicas) == (replicas,) * 3
        and now.current_revision == now.update_revision
    )


async def a_stateful_set(bench: Bench, replicas: int = 3, **spec: Any) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}}
    whole = {"replicas": replicas, "serviceName": "web", "selector": {"matchLabels": labels}, "template": template}
    await bench.client.create(STATEFUL_SET, {"metadata": {"name": "web"}, "spec": whole | spec}, "default")
    await bench.seen.until(lambda: is_settled(bench, replicas))


async def change(bench: Bench, body: dict[str, Any]) -> None:
    await bench.client.patch(STATEFUL_SET, "web", "default", body)


async def test_pods_come_one_after_the_other_each_with_its_claim(bench):
    await bench.start()
    came: list[str] = []
    assert bench.cluster is not None
    bench.cluster.pods.subscribe(changed=lambda pod: came.append(pod.name) if pod.name not in came else None)
    ready_when_made: list[int] = []
    bench.cluster.pods.subscribe(
        changed=lambda pod: (
            ready_when_made.append(sum(each.ready_since is not None for each in bench.cluster.pods.all()))
            if not pod.spec.node_name
            else None
        )
    )
    await a_stateful_set(bench, volumeClaimTemplates=CLAIMS)

    assert came == ["web-0", "web-1", "web-2"]
    assert ready_when_made == [0, 1, 2]
    assert names(bench, "persistentvolumeclaims") == ["data-web-0", "data-web-1", "data-web-2"]
    await bench.seen.until(
        lambda: (
            {
                ("SuccessfulCreate", "Create Pod web-1 in StatefulSet web successful"),
                ("SuccessfulCreate", "Create Claim data-web-1 Pod web-1 in StatefulSet web success"),
            }
            <= set(bench.seen.events)
        )
    )


async def test_a_deleted_pod_comes_back_under_its_name_with_its_claim(bench):
    await bench.start()
    await a_stateful_set(bench, volumeClaimTemplates=CLAIMS)
    before = {pod.name: pod.uid for pod in bench.seen.pods}
    claims = {claim.uid for claim in bench.seen.of("persistentvolumeclaims").values()}

    await bench.client.delete(POD, "web-1", "default")
    await bench.seen.until(
        lambda: is_settled(bench) and {pod.name: pod.uid for pod in bench.seen.pods}.get("web-1") != before["web-1"]
    )
    assert names(bench) == ["web-0", "web-1", "web-2"]
    assert {claim.uid for claim in bench.seen.of("persistentvolumeclaims").values()} == claims


async def test_scaling_down_removes_the_last_pods_and_keeps_their_claims(bench):
    await bench.start()
    await a_stateful_set(bench, volumeClaimTemplates=CLAIMS)
    await change(bench, {"spec": {"replicas": 1}})
    await bench.seen.until(lambda: is_settled(bench, 1))

    assert names(bench) == ["web-0"]
    assert names(bench, "persistentvolumeclaims") == ["data-web-0", "data-web-1", "data-web-2"]


async def test_claims_go_as_the_retention_policy_has_it(bench):
    await bench.start()
    retention = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    await a_stateful_set(bench, volumeClaimTemplates=CLAIMS, persistentVolumeClaimRetentionPolicy=retention)
    before = {claim.name: claim.uid for claim in bench.seen.of("persistentvolumeclaims").values()}

    await change(bench, {"spec": {"replicas": 2}})
    await bench.seen.until(lambda: names(bench, "persistentvolumeclaims") == ["data-web-0", "data-web-1"])
    await change(bench, {"spec": {"replicas": 3}})
    await bench.seen.until(lambda: is_settled(bench))
    claims = {claim.name: claim.uid for claim in bench.seen.of("persistentvolumeclaims").values()}
    assert claims["data-web-2"] != before.pop("data-web-2")
    assert before.items() <= claims.items()

    await bench.client.delete(STATEFUL_SET, "web", "default")
    await bench.seen.until(lambda: not bench.seen.of("persistentvolumeclaims") and not bench.seen.pods)
    await bench.seen.until(lambda: not bench.seen.of("controllerrevisions"))


async def test_an_update_replaces_pods_from_the_last_to_the_partition(bench):
    await bench.start()
    await a_stateful_set(bench)
    first = status(bench).current_revision
    rolling = {"updateStrategy": {"rollingUpdate": {"partition": 1}}}
    body = the_image("nginx:1.28")
    body["spec"] |= rolling
    replaced: list[str] = []
    assert bench.cluster is not None
    bench.cluster.pods.subscribe(deleted=lambda pod: replaced.append(pod.name))

    await change(bench, body)
    await bench.seen.until(
        lambda: status(bench) and status(bench).updated_replicas == 2 and status(bench).available_replicas == 3
    )
    assert replaced == ["web-2", "web-1"]
    assert images(bench) == {"web-0": "nginx:1.27", "web-1": "nginx:1.28", "web-2": "nginx:1.28"}
    assert (status(bench).current_revision, status(bench).current_replicas) == (first, 1)

    await bench.client.delete(POD, "web-0", "default")
    await bench.seen.until(
        lambda: "web-0" in replaced and "web-0" in images(bench) and status(bench).available_replicas == 3
    )
    assert images(bench)["web-0"] == "nginx:1.27"

    await change(bench, {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}})
    await bench.seen.until(lambda: is_settled(bench))
    assert set(images(bench).values()) == {"nginx:1.28"}


async def test_pods_are_updated_when_they_are_deleted_if_so_wished(bench):
    await bench.start()
    await a_stateful_set(bench, 2, updateStrategy={"type": "OnDelete"})
    await change(bench, the_image("nginx:1.28"))
    await bench.seen.until(lambda: status(bench) and status(bench).current_revision != status(bench).update_revision)
    assert set(images(bench).values()) == {"nginx:1.27"}

    await bench.client.delete(POD, "web-0", "default")
    await bench.seen.until(lambda: images(bench).get("web-0") == "nginx:1.28" and status(bench).updated_replicas == 1)
    assert images(bench)["web-1"] == "nginx:1.27"


async def test_a_parallel_set_does_not_wait(bench):
    await bench.start(binds=False)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}}
    spec = {
        "replicas": 4,
        "selector": {"matchLabels": labels},
        "template": template,
        "podManagementPolicy": "Parallel",
        "ordinals": {"start": 3},
    }
    await bench.client.create(STATEFUL_SET, {"metadata": {"name": "web"}, "spec": spec}, "default")

    await bench.seen.until(lambda: names(bench) == ["web-3", "web-4", "web-5", "web-6"])
    await bench.seen.until(lambda: status(bench) and status(bench).replicas == 4)
    assert status(bench).ready_replicas == 0


async def test_templates_that_come_back_get_a_new_number_and_old_ones_go(bench):
    await bench.start()
    await a_stateful_set(bench, 1, revisionHistoryLimit=1)
    for image in ("nginx:1.28", "nginx:1.29", "nginx:1.28"):
        await change(bench, the_image(image))
        await bench.seen.until(lambda image=image: is_settled(bench, 1) and images(bench) == {"web-0": image})

    await bench.seen.until(lambda: len(bench.seen.of("controllerrevisions")) == 2)
    kept = sorted(bench.seen.of("controllerrevisions").values(), key=lambda each: each.revision)
    assert [each.revision for each in kept] == [3, 4]
    assert bench.seen.pods[0].labels[REVISION] == kept[-1].name


async def test_a_revision_of_the_same_name_is_avoided(bench):
    await bench.start()
    await a_stateful_set(bench, 1)
    [revision] = bench.seen.of("controllerrevisions").values()
    await bench.client.delete(STATEFUL_SET, "web", "default")
    await bench.seen.until(lambda: not bench.seen.of("controllerrevisions") and not bench.seen.pods)
    taken = {"metadata": {"name": revision.name}, "data": {"spec": {}}, "revision": 1}
    await bench.client.create(ControllerRevision.KIND, taken, "default")

    await a_stateful_set(bench, 1)
    assert status(bench).collision_count == 1
    assert status(bench).update_revision != revision.name


async def test_a_pod_counts_when_it_has_been_ready_for_long_enough(bench):
    clock = ManualClock()
    await bench.start(clock=clock)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}}
    spec = {"replicas": 2, "minReadySeconds": 30, "selector": {"matchLabels": labels}, "template": template}
    await bench.client.create(STATEFUL_SET, {"metadata": {"name": "web"}, "spec": spec}, "default")
    await bench.seen.until(lambda: status(bench) and status(bench).ready_replicas == 1)
    assert names(bench) == ["web-0"]
    assert status(bench).available_replicas == 0

    await bench.pass_time(clock, 10, lambda: is_settled(bench, 2))


async def test_a_pod_that_waits_gets_its_claim_again(bench):
    await bench.start(binds=False)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template, "volumeClaimTemplates": CLAIMS}
    await bench.client.create(STATEFUL_SET, {"metadata": {"name": "web"}, "spec": spec}, "default")
    await bench.seen.until(lambda: names(bench) == ["web-0"])
    [claim] = bench.seen.of("persistentvolumeclaims").values()

    await bench.client.delete(CLAIM, claim.name, "default")
    await bench.seen.until(
        lambda: [each.uid for each in bench.seen.of("persistentvolumeclaims").values()] not in ([], [claim.uid])
    )


@pytest.mark.parametrize("refusal", ["resources", "image"])
async def test_what_the_server_rejects_is_reported_in_an_event(bench, refusal, monkeypatch):
    await bench.start()
    create = bench.client.create

    async def refuse(kind: Any, body: Any, *args: Any, **more: Any) -> Any:
        from mooring.base.errors import ApiError

        if kind == (CLAIM if refusal == "resources" else POD):
            raise ApiError(403, "Forbidden", f"exceeded quota: {refusal}")
        return await create(kind, body, *args, **more)

    monkeypatch.setattr(bench.client, "create", refuse)
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": "nginx:1.27"}]}}
    spec = {"selector": {"matchLabels": labels}, "template": template, "volumeClaimTemplates": CLAIMS}
    await bench.client.create(STATEFUL_SET, {"metadata": {"name": "web"}, "spec": spec}, "default")
    what = "Create Claim data-web-0 for Pod web-0" if refusal == "resources" else "Create Pod web-0"
    message = f"{what} in StatefulSet web failed error: exceeded quota: {refusal}"
    await bench.seen.until(lambda: ("FailedCreate", message) in bench.seen.events)

    monkeypatch.setattr(bench.client, "create", create)
    await bench.seen.until(lambda: is_settled(bench, 1))


async def test_a_set_that_was_restored_with_its_pods_alone_keeps_them(bench):
    labels = {"app": "web"}
    spec = {"containers": [{"name": "app", "image": "nginx:1.27"}]}
    kept = {"namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    owner = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "web", "uid": "uid-set", "generation": 4, **kept},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
        "status": {"observedGeneration": 4, "currentRevision": "web-abc", "updateRevision": "web-abc", "replicas": 2},
    }
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "uid-set", "controller": True}
    pods = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": f"web-{ordinal}",
                "uid": f"uid-{ordinal}",
                "labels": labels | {REVISION: "web-abc", "statefulset.kubernetes.io/pod-name": f"web-{ordinal}"},
                "ownerReferences": [reference],
                **kept,
            },
            "spec": {"nodeName": "node-1", **spec},
        }
        for ordinal in range(2)
    ]
    assert not bench.server.restore([owner, *pods]).problems
    await bench.start()
    await bench.seen.until(lambda: is_settled(bench, 2) and names(bench, "controllerrevisions") == ["web-abc"])

    assert {pod.uid for pod in bench.seen.pods} == {"uid-0", "uid-1"}


async def test_a_set_takes_over_what_an_earlier_one_left_behind(bench):
    await bench.start()
    await a_stateful_set(bench, 2)
    before = {pod.uid for pod in bench.seen.pods}
    [revision] = bench.seen.of("controllerrevisions").values()
    path = STATEFUL_SET.path("default", "web")
    await bench.client.transport.request("DELETE", path, b'{"propagationPolicy": "Orphan"}')
    await bench.seen.until(
        lambda: (
            not bench.seen.of("statefulsets")
            and not any(
                each.metadata.owner_references
                for plural in ("pods", "controllerrevisions")
                for each in bench.seen.of(plural).values()
            )
        )
    )

    await a_stateful_set(bench, 2)
    assert {pod.uid for pod in bench.seen.pods} == before
    assert status(bench).update_revision == revision.name
    assert names(bench, "controllerrevisions") == [revision.name]
