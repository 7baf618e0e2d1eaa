"""What the server says about itself, and the questions it answers without storing anything."""

from __future__ import annotations

import pytest
from tests.apiserver.builders import PODS, a_pod
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


async def test_openapi_says_that_fields_are_validated_by_the_server(api: Client):
    document = (await api.get("/openapi/v3/apis/apps/v1")).body
    operation = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in operation["parameters"]]
    assert operation["x-kubernetes-group-version-kind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert (await api.get("/openapi/v3/apis/none/v1")).code == 404


async def test_whoever_has_the_token_may_do_everything(api: Client):
    spec = {"resourceAttributes": {"verb": "create", "resource": "pods"}}
    reviews = "/apis/authorization.k8s.io/v1"
    answer = await api.post(f"{reviews}/selfsubjectaccessreviews", {"spec": spec})
    assert (answer.code, answer.body["status"]["allowed"]) == (201, True)
    for groups, is_allowed in ((["system:masters"], True), (["system:unauthenticated"], False), ([], False)):
        answer = await api.post(f"{reviews}/subjectaccessreviews", {"spec": spec | {"groups": groups}})
        assert (answer.code, answer.body["status"]["allowed"]) == (201, is_allowed)
    rules = await api.post(f"{reviews}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert rules.body["status"]["resourceRules"][0]["verbs"] == ["*"]
    assert (await api.get(f"{reviews}/selfsubjectaccessreviews")).code == 405


async def test_tokens_are_reviewed(api: Client):
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert (await api.post(path, {"spec": {"token": api.server.token}})).body["status"]["authenticated"]
    assert not (await api.post(path, {"spec": {"token": "other"}})).body["status"]["authenticated"]
    me = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert me.body["status"]["userInfo"]["username"] == "mooring-admin"


@pytest.mark.parametrize(
    ("method", "sub"), [("GET", "log"), ("POST", "exec"), ("GET", "attach"), ("POST", "portforward")]
)
async def test_what_only_real_containers_have_is_refused_with_the_reason(api: Client, method: str, sub: str):
    await api.post(PODS, a_pod())
    answer = await api.call(method, f"{PODS}/web/{sub}")
    assert answer.code == 400
    assert answer.message.startswith('pod "web" is simulated: simulated containers ')
    assert (await api.call(method, f"{PODS}/none/{sub}")).code == 404


async def test_debug_containers_and_tokens_are_refused_with_the_reason(api: Client):
    await api.post(PODS, a_pod())
    answer = await api.patch(f"{PODS}/web/ephemeralcontainers", {"spec": {"ephemeralContainers": []}})
    assert (answer.code, answer.message.split(":")[0]) == (400, 'pod "web" is simulated')
    assert "a debug container could not look at any" in answer.message
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    answer = await api.post(f"{accounts}/default/token", {"spec": {"audiences": []}})
    assert (answer.code, answer.message.split(":")[0]) == (400, "the embedded API server issues no tokens")
    assert (await api.post(f"{accounts}/none/token", {})).code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", f"{PODS}/web"),
        ("PUT", PODS),
        ("PATCH", PODS),
        ("GET", f"{PODS}/web/binding"),
        ("DELETE", f"{PODS}/web/status"),
    ],
)
async def test_a_method_that_makes_no_sense_is_not_allowed(api: Client, method: str, path: str):
    await api.post(PODS, a_pod())
    assert (await api.call(method, path, {} if method != "GET" else None)).code == 405
