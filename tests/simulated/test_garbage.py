"""What goes when its owner or its namespace goes."""

from __future__ import annotations

from tests.simulated.conftest import (
    DEPLOYMENT,
    NAMESPACE,
    POD,
    REPLICA_SET,
    Bench,
    deployment_document,
    pod_document,
)

from mooring.client.api import path_of
from mooring.objects.meta import Kind
from mooring.simulated.namespaces import SERVICE_ACCOUNT

CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")


async def start(bench: Bench) -> None:
    """The embedded server tidies up by itself; here it must not, so that what goes was removed by a client."""
    chores = bench.server._chores
    assert chores is not None
    chores.cancel()
    await bench.start(collects_garbage=True)


async def a_running_deployment(bench: Bench) -> None:
    await bench.client.create(DEPLOYMENT, deployment_document(), "default")
    await bench.seen.until(lambda: sum(pod.status.phase == "Running" for pod in bench.seen.pods) == 3)


def left(bench: Bench) -> tuple[int, int, int]:
    return len(bench.seen.of("deployments")), len(bench.seen.of("replicasets")), len(bench.seen.pods)


async def delete(bench: Bench, kind: Kind, name: str, propagation: str) -> None:
    body = b'{"propagationPolicy": "%s"}' % propagation.encode()
    await bench.client.transport.request("DELETE", path_of(kind, "default", name), body)


async def test_everything_below_a_deleted_deployment_goes(bench):
    await start(bench)
    await a_running_deployment(bench)

    await delete(bench, DEPLOYMENT, "web", "Background")
    await bench.seen.until(lambda: left(bench) == (0, 0, 0))


async def test_in_the_foreground_the_owner_goes_last(bench):
    await start(bench)
    await a_running_deployment(bench)

    await delete(bench, DEPLOYMENT, "web", "Foreground")
    await bench.seen.until(lambda: left(bench) == (0, 0, 0))
    assert bench.seen.gone["Pod"] < bench.seen.gone["Deployment"]
    assert bench.seen.gone["ReplicaSet"] < bench.seen.gone["Deployment"]


async def test_orphans_stay_and_forget_their_owner(bench):
    await start(bench)
    await a_running_deployment(bench)
    [replica_set] = bench.seen.of("replicasets").values()
    await delete(bench, DEPLOYMENT, "web", "Orphan")
    await bench.seen.until(lambda: left(bench) == (0, 1, 3))

    document = await bench.client.get(REPLICA_SET, replica_set.name, "default")
    assert not document["metadata"].get("ownerReferences")


async def test_a_pod_whose_owner_never_existed_goes(bench):
    await start(bench)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "made-up"}
    await bench.client.create(POD, pod_document("lost", ownerReferences=[owner]), "default")
    await bench.client.create(POD, pod_document("kept"), "default")
    await bench.seen.until(lambda: [pod.name for pod in bench.seen.pods] == ["kept"])


async def test_a_pod_stays_while_one_of_its_owners_does(bench):
    await start(bench)
    made = await bench.client.create(CONFIG_MAP, {"metadata": {"name": "there"}}, "default")
    uid = made["metadata"]["uid"]
    owners = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "made-up"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "there", "uid": uid},
    ]
    await bench.client.create(POD, pod_document("kept", ownerReferences=owners), "default")
    await bench.client.create(POD, pod_document("lost", ownerReferences=owners[:1]), "default")
    await bench.seen.until(lambda: [pod.name for pod in bench.seen.pods] == ["kept"])


async def test_every_namespace_has_its_default_service_account(bench):
    await start(bench)
    await bench.client.create(NAMESPACE, {"metadata": {"name": "shop"}})
    await bench.client.create(POD, pod_document("web"), "shop")
    await bench.seen.until(lambda: any(pod.status.phase == "Running" for pod in bench.seen.pods))

    assert (await bench.client.get(SERVICE_ACCOUNT, "default", "default"))["metadata"]["name"] == "default"


async def test_a_deleted_namespace_is_emptied_and_goes(bench):
    await start(bench)
    await bench.client.create(NAMESPACE, {"metadata": {"name": "shop"}})
    await bench.client.create(DEPLOYMENT, deployment_document(), "shop")
    await bench.client.create(CONFIG_MAP, {"metadata": {"name": "settings"}}, "shop")
    await bench.seen.until(lambda: sum(pod.status.phase == "Running" for pod in bench.seen.pods) == 3)

    await bench.client.delete(NAMESPACE, "shop")
    await bench.seen.until(lambda: "shop" not in bench.seen.of("namespaces"))
    assert left(bench) == (0, 0, 0)
    assert await bench.client.list(CONFIG_MAP, "shop") == []
