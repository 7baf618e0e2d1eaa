"""NodeCRDResourceFit in a live scheduler: waiting for its kind, woken by its objects, undisturbed by broken ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduler.conftest import CRDS, Live, a_configuration, a_live_scheduler

from mooring.apiserver import EmbeddedApiServer
from mooring.framework.definitions import definition_of
from mooring.plugins.examples.node_crd_resource_fit import ClusterScopedResource

CONFIG = a_configuration(
    "- schedulerName: default-scheduler",
    "- schedulerName: secondary-scheduler",
    "  plugins: {multiPoint: {enabled: [{name: NodeCRDResourceFit}]}}",
)
KIND = ClusterScopedResource.KIND


def an_object(node: str, *, cpu: Any = True) -> dict[str, Any]:
    spec = {"resourcesFilter": {"cpu": cpu}, "resourcesScore": {"cpu": 55}}
    return {"apiVersion": KIND.api_version, "kind": KIND.kind, "metadata": {"name": node}, "spec": spec}


async def install(live: Live) -> None:
    await live.client.create(CRDS, definition_of(ClusterScopedResource))


async def test_its_pods_wait_for_the_kind_and_others_go_on(server: EmbeddedApiServer):
    async with a_live_scheduler(server, CONFIG) as live:
        await live.node("node-1")
        await live.pod("early", scheduler="secondary-scheduler")
        message = await live.refused("early")
        assert (
            "plugin NodeCRDResourceFit reads: the server has no clusterscopedresources.scheduling.sigs.k8s.io"
            in message
        )
        await live.pod("other")
        assert await live.bound("other") == ["node-1"]

        await install(live)
        await live.refused("early", containing="0/1 nodes are available: 1 CRD for node not found.")
        await live.client.create(KIND, an_object("node-1"))
        assert await live.bound("early") == ["node-1"]


@pytest.mark.parametrize("later", ["changes", "appears for another node"])
async def test_an_object_that_admits_the_pod_wakes_it(server: EmbeddedApiServer, later: str):
    async with a_live_scheduler(server, CONFIG) as live:
        await install(live)
        await live.client.create(KIND, an_object("node-1", cpu=False))
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("web", scheduler="secondary-scheduler")
        await live.refused("web", containing="Node does not enable resource cpu")
        if later == "changes":
            await live.client.patch(KIND, "node-1", None, {"spec": {"resourcesFilter": {"cpu": True}}}, form="merge")
            assert await live.bound("web") == ["node-1"]
        else:
            await live.client.create(KIND, an_object("node-2"))
            assert await live.bound("web") == ["node-2"]


async def test_a_wrong_type_that_a_looser_schema_let_in_costs_that_node_alone(
    server: EmbeddedApiServer, capfd: pytest.CaptureFixture[str]
):
    loose = definition_of(ClusterScopedResource)
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything
    async with a_live_scheduler(server, CONFIG) as live:
        await live.client.create(CRDS, loose)
        await live.client.create(KIND, an_object("node-1", cpu="yes"))
        await live.client.create(KIND, an_object("node-2"))
        await live.node("node-1")
        await live.node("node-2")
        await live.pod("web", scheduler="secondary-scheduler")
        assert await live.bound("web") == ["node-2"]
    written = capfd.readouterr().err
    assert '"Skipping an object that cannot be decoded" kind="clusterscopedresources.scheduling.sigs.k8s.io"' in written
    assert 'object="node-1"' in written
    assert "resourcesFilter" in written
