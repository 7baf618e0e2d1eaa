"""Discovery and OpenAPI documents."""

from __future__ import annotations

from tests.apiserver.conftest import Client

from mooring.apiserver.discovery import AGGREGATED_TYPE


async def test_the_version_is_kubernetes_with_a_mark_of_ours(api: Client):
    assert (await api.get("/version")).body["gitVersion"] == "v1.36.4+mooring"


async def test_old_and_aggregated_discovery_agree(api: Client):
    groups = [each["name"] for each in (await api.get("/apis")).body["groups"]]
    aggregated = (await api.get("/apis", Accept=AGGREGATED_TYPE)).body
    assert [each["metadata"]["name"] for each in aggregated["items"]] == groups
    assert {"apps", "batch", "events.k8s.io", "apiextensions.k8s.io", "resource.k8s.io"} <= set(groups)
    for item in aggregated["items"]:
        for version in item["versions"]:
            path = f"/apis/{item['metadata']['name']}/{version['version']}"
            listed = {each["name"] for each in (await api.get(path)).body["resources"] if "/" not in each["name"]}
            assert {each["resource"] for each in version["resources"]} == listed


async def test_core_resources_are_discovered_with_their_short_names(api: Client):
    listed = {each["name"]: each for each in (await api.get("/api/v1")).body["resources"]}
    assert listed["pods"]["shortNames"] == ["po"]
    assert listed["pods/binding"]["kind"] == "Binding"
    assert not listed["nodes"]["namespaced"]
    assert (await api.get("/api")).body["versions"] == ["v1"]
    assert (await api.get("/apis/apps")).body["preferredVersion"]["version"] == "v1"
    core = (await api.get("/api", Accept=AGGREGATED_TYPE)).body
    assert core["items"][0]["versions"][0]["version"] == "v1"


async def test_openapi_describes_every_version_and_closes_its_references(api: Client):
    paths = (await api.get("/openapi/v3")).body["paths"]
    assert {"api/v1", "apis/apps/v1"} <= set(paths)
    for entry in paths.values():
        document = await api.get(entry["serverRelativeURL"])
        schemas = document.body["components"]["schemas"]
        assert set(_references(document.body)) <= set(schemas)


def _references(node: object) -> list[str]:
    if isinstance(node, dict):
        own = [node["$ref"].rsplit("/", 1)[1]] if isinstance(node.get("$ref"), str) else []
        return own + [name for value in node.values() for name in _references(value)]
    return [name for item in node for name in _references(item)] if isinstance(node, list) else []


async def test_openapi_names_the_types_of_quantities_and_times(api: Client):
    schemas = (await api.get("/openapi/v3/apis/apps/v1")).body["components"]["schemas"]

    def named(type: str, field: str) -> str:
        return str(schemas[type]["properties"][field]["allOf"][0]["$ref"]).rpartition(".")[2]

    assert named("io.k8s.api.apps.v1.RollingUpdateDeployment", "maxSurge") == "IntOrString"
    assert named("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta", "creationTimestamp") == "Time"


async def test_openapi_declares_field_validation_by_the_server(api: Client):
    document = (await api.get("/openapi/v3/apis/apps/v1")).body
    operation = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (await api.get("/openapi/v3/apis/none/v1")).code == 404


async def test_the_address_in_discovery_is_the_one_that_the_client_connected_to(api: Client):
    (listed,) = (await api.get("/api")).body["serverAddressByClientCIDRs"]
    assert listed["serverAddress"] == f"127.0.0.1:{api.server.port}"
