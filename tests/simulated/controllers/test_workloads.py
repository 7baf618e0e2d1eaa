"""Deployments create ReplicaSets, and these create pods, on a running cluster."""

from __future__ import annotations

from typing import Any

from tests.simulated.conftest import DEPLOYMENT, POD, REPLICA_SET, Bench, deployment_document

from mooring.simulated.controllers.deployments import REVISION


def running(bench: Bench, image: str = "nginx:1.27") -> int:
    return sum(
        pod.status.phase == "Running" and not pod.is_terminating and pod.spec.containers[0].image == image
        for pod in bench.seen.pods
    )


def reason(bench: Bench, name: str = "default/web") -> str | None:
    """The reason of Progressing, once the status observes the present generation."""
    deployment = bench.seen.of("deployments").get(name)
    if deployment is None or deployment.status.observed_generation < deployment.metadata.generation:
        return None
    return next((each.reason for each in deployment.status.conditions if each.type == "Progressing"), None)


def the_image(image: str) -> dict[str, Any]:
    return {"spec": {"template": {"spec": {"containers": [{"name": "app", "image": image}]}}}}


async def a_deployment(bench: Bench, replicas: int = 3, **more) -> None:
    await bench.client.create(DEPLOYMENT, deployment_document(replicas=replicas, **more), "default")
    await bench.seen.until(lambda: running(bench) == replicas and reason(bench) == "NewReplicaSetAvailable")


async def test_a_deployment_becomes_running_pods_and_reports_it(bench):
    await bench.start()
    await a_deployment(bench)

    status = (await bench.client.get(DEPLOYMENT, "web", "default"))["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (3, 3, 3)
    [replica_set] = bench.seen.of("replicasets").values()
    assert all(pod.name.startswith(f"{replica_set.name}-") for pod in bench.seen.pods)
    assert replica_set.metadata.annotations[REVISION] == "1"


async def test_the_controllers_record_events(bench):
    await bench.start()
    await a_deployment(bench, 2)
    [replica_set] = bench.seen.of("replicasets").values()

    await bench.seen.until(
        lambda: ("ScalingReplicaSet", f"Scaled up replica set {replica_set.name} from 0 to 2") in bench.seen.events
    )
    for pod in bench.seen.pods:
        await bench.seen.until(lambda pod=pod: ("SuccessfulCreate", f"Created pod: {pod.name}") in bench.seen.events)


async def test_a_deleted_pod_is_replaced(bench):
    await bench.start()
    await a_deployment(bench)
    gone = bench.seen.pods[0]

    await bench.client.delete(POD, gone.name, "default")
    await bench.seen.until(lambda: running(bench) == 3 and gone.name not in {pod.name for pod in bench.seen.pods})


async def test_scaling_up_and_down_makes_and_removes_pods(bench):
    await bench.start()
    await a_deployment(bench)

    await bench.client.patch(DEPLOYMENT, "web", "default", {"spec": {"replicas": 6}})
    await bench.seen.until(lambda: running(bench) == 6)
    await bench.client.patch(DEPLOYMENT, "web", "default", {"spec": {"replicas": 1}})
    await bench.seen.until(lambda: len(bench.seen.pods) == 1)


async def test_exactly_as_many_pods_are_made_as_wanted(bench):
    await bench.start()
    created: set[str] = set()
    assert bench.cluster is not None
    bench.cluster.pods.subscribe(changed=lambda pod: created.add(pod.uid))
    await a_deployment(bench, 40)

    assert len(created) == 40


async def test_a_new_image_is_rolled_out_and_rolled_back(bench):
    await bench.start()
    await a_deployment(bench, 4)
    for image, revision in (("nginx:1.28", "2"), ("nginx:1.27", "3")):
        containers = [{"name": "app", "image": image}]
        await bench.client.patch(
            DEPLOYMENT, "web", "default", {"spec": {"template": {"spec": {"containers": containers}}}}
        )
        await bench.seen.until(
            lambda image=image: (
                running(bench, image) == 4 and len(bench.seen.pods) == 4 and reason(bench) == "NewReplicaSetAvailable"
            )
        )
        deployment = await bench.client.get(DEPLOYMENT, "web", "default")
        assert deployment["metadata"]["annotations"][REVISION] == revision
    assert len(bench.seen.of("replicasets")) == 2


async def test_a_deployment_that_recreates_never_mixes(bench):
    await bench.start()
    await a_deployment(bench, 3, strategy={"type": "Recreate"})
    mixed = []
    assert bench.cluster is not None
    bench.cluster.pods.subscribe(
        changed=lambda _: mixed.append(len({pod.spec.containers[0].image for pod in bench.cluster.pods.all()}) > 1)
    )
    await bench.client.patch(DEPLOYMENT, "web", "default", the_image("nginx:1.28"))
    await bench.seen.until(lambda: running(bench, "nginx:1.28") == 3)

    assert not any(mixed)


async def test_a_deleted_replica_set_is_made_again(bench):
    await bench.start()
    await a_deployment(bench)
    [replica_set] = bench.seen.of("replicasets").values()

    await bench.client.delete(REPLICA_SET, replica_set.name, "default")
    await bench.seen.until(
        lambda: (
            running(bench) == 3
            and all(owner.uid != replica_set.uid for pod in bench.seen.pods for owner in pod.metadata.owner_references)
        )
    )
