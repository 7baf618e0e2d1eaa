"""Custom resources: definitions, and objects that are validated by their schemas."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.conftest import Client

from mooring.apiserver.custom.structural import check, fill_defaults, prune
from mooring.apiserver.status import StatusError

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
QUOTAS = "/apis/example.com/v1/namespaces/default/quotas"
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["team"],
            "properties": {
                "team": {"type": "string", "enum": ["red", "blue"]},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
                "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
                "anything": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}},
    },
}


def a_definition(group: str = "example.com", **version: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"quotas.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": "quotas", "kind": "Quota", "shortNames": ["qt"]},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": SCHEMA},
                    "subresources": {
                        "status": {},
                        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
                    },
                    **version,
                }
            ],
        },
    }


def a_quota(name: str = "one", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Quota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"team": "red", **spec},
    }


@pytest.fixture
async def quotas(api: Client) -> Client:
    assert (await api.post(DEFINITIONS, a_definition())).code == 201
    return api


async def test_a_definition_is_established_and_discovered(quotas: Client):
    definition = (await quotas.get(f"{DEFINITIONS}/quotas.example.com")).body
    assert {each["type"]: each["status"] for each in definition["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert definition["spec"]["names"]["listKind"] == "QuotaList"
    listed = (await quotas.get("/apis/example.com/v1")).body["resources"]
    assert [each["name"] for each in listed] == ["quotas", "quotas/status", "quotas/scale"]


async def test_an_object_is_defaulted_and_pruned(quotas: Client):
    response = await quotas.post(QUOTAS, a_quota(colour="green", anything={"goes": 1}, limits={"cpu": 1}))
    assert response.code == 201
    assert response.body["spec"] == {"team": "red", "replicas": 2, "anything": {"goes": 1}, "limits": {"cpu": 1}}
    assert response.headers["Warning"] == '299 - "unknown field \\"spec.colour\\""'
    strict = await quotas.post(f"{QUOTAS}?fieldValidation=Strict", a_quota("two", colour="green"))
    assert 'strict decoding error: unknown field "spec.colour"' in strict.message


WRONG = {
    "a missing field": ({"team": None}, "spec.team: Required value"),
    "a value outside the enumeration": (
        {"team": "green"},
        'spec.team: Unsupported value: "green": supported values: "blue", "red"',
    ),
    "too large a number": (
        {"replicas": 9},
        "spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5",
    ),
    "a wrong type": (
        {"replicas": "two"},
        'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
    ),
    "a wrong type inside a map": ({"limits": {"cpu": "1"}}, "spec.limits.cpu in body must be of type integer"),
}


@pytest.mark.parametrize(("spec", "sentence"), WRONG.values(), ids=WRONG.keys())
async def test_an_object_is_refused_with(quotas: Client, spec: dict[str, Any], sentence: str):
    response = await quotas.post(QUOTAS, a_quota(**spec))
    assert (response.code, response.body["reason"]) == (422, "Invalid")
    assert sentence in response.message


async def test_status_is_written_apart_and_generation_follows_the_spec(quotas: Client):
    await quotas.post(QUOTAS, a_quota() | {"status": {"phase": "ignored"}})
    assert "status" not in (await quotas.get(f"{QUOTAS}/one")).body
    status = await quotas.patch(
        f"{QUOTAS}/one/status", {"status": {"phase": "Ready"}, "spec": {"team": "blue"}}, "merge"
    )
    assert (status.body["status"], status.body["spec"]["team"]) == ({"phase": "Ready"}, "red")
    spec = await quotas.patch(f"{QUOTAS}/one", {"spec": {"team": "blue"}, "status": {"phase": "Lost"}}, "merge")
    assert (spec.body["status"], spec.body["metadata"]["generation"]) == ({"phase": "Ready"}, 2)


async def test_scale_follows_the_paths_of_the_definition(quotas: Client):
    await quotas.post(QUOTAS, a_quota())
    assert (await quotas.get(f"{QUOTAS}/one/scale")).body["spec"] == {"replicas": 2}
    await quotas.patch(f"{QUOTAS}/one/scale", {"spec": {"replicas": 4}}, "merge")
    assert (await quotas.get(f"{QUOTAS}/one")).body["spec"]["replicas"] == 4


async def test_a_strategic_patch_is_refused_because_there_are_no_merge_keys(quotas: Client):
    await quotas.post(QUOTAS, a_quota())
    assert (await quotas.patch(f"{QUOTAS}/one", {"spec": {"team": "blue"}})).code == 415


async def test_columns_are_read_by_path(api: Client):
    columns = [
        {"name": "Team", "type": "string", "jsonPath": ".spec.team"},
        {"name": "Phase", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Dotted", "type": "string", "jsonPath": r".metadata.labels.example\.com/name"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    await api.post(DEFINITIONS, a_definition(additionalPrinterColumns=columns))
    quota = a_quota()
    quota["metadata"]["labels"] = {"example.com/name": "x"}
    await api.post(QUOTAS, quota)
    table = (await api.get(QUOTAS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert [column["name"] for column in table["columnDefinitions"]] == ["Name", "Team", "Phase", "Dotted", "Age"]
    assert table["rows"][0]["cells"] == ["one", "red", None, "x", "0s"]


CELLS = {
    "an object, by its keys": ({"memory": "1Gi", "cpu": 2}, '{"cpu":2,"memory":"1Gi"}'),
    "a list": (["b", "a"], '["b","a"]'),
    "a whole number": (3, "3"),
    "a truth value": (True, "true"),
    "nothing": (None, None),
}


@pytest.mark.parametrize(("value", "cell"), CELLS.values(), ids=CELLS.keys())
async def test_a_column_of_text_shows_other_values_as_json(api: Client, value: object, cell: str | None):
    columns = [{"name": "Max", "type": "string", "jsonPath": ".spec.max"}]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await api.post(DEFINITIONS, a_definition(additionalPrinterColumns=columns, schema={"openAPIV3Schema": anything}))
    await api.post(QUOTAS, a_quota(max=value))
    table = (await api.get(QUOTAS, Accept="application/json;as=Table;v=v1;g=meta.k8s.io")).body
    assert table["rows"][0]["cells"] == ["one", cell]


async def test_versions_show_the_same_object(api: Client):
    definition = a_definition()
    definition["spec"]["versions"].append({**definition["spec"]["versions"][0], "name": "v2", "storage": False})
    await api.post(DEFINITIONS, definition)
    await api.post(QUOTAS, a_quota())
    newer = (await api.get("/apis/example.com/v2/namespaces/default/quotas/one")).body
    assert (newer["apiVersion"], newer["spec"]["team"]) == ("example.com/v2", "red")


async def test_deleting_the_definition_removes_its_objects_and_ends_watches(quotas: Client):
    await quotas.post(QUOTAS, a_quota())
    watching = await quotas.watch(QUOTAS)
    await quotas.delete(f"{DEFINITIONS}/quotas.example.com")
    assert await watching.seen(2) == [("ADDED", "one"), ("DELETED", "one")]
    assert await watching.next() is None
    assert (await quotas.get(QUOTAS)).code == 404
    await quotas.post(DEFINITIONS, a_definition())
    assert (await quotas.get(QUOTAS)).body["items"] == []


def named(definition: dict[str, Any], name: str) -> dict[str, Any]:
    definition["metadata"]["name"] = name
    return definition


REFUSED = {
    "a name that is not plural and group": (
        named(a_definition(), "quota.example.com"),
        'metadata.name: Invalid value: "quota.example.com": must be spec.names.plural+"."+spec.group',
    ),
    "a protected group without approval": (
        a_definition("scheduling.k8s.io"),
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval"
        ' annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111',
    ),
    "no storage version": (a_definition(storage=False), "must have exactly one version marked as storage version"),
    "no schema": (a_definition(schema={}), "schema.openAPIV3Schema: Required value: schemas are required"),
    "a pattern that is none": (
        a_definition(
            schema={"openAPIV3Schema": {"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}}}
        ),
        'properties[x].pattern: Invalid value: "(": must be a valid regular expression',
    ),
    "a column without a path": (
        a_definition(additionalPrinterColumns=[{"name": "X", "type": "string", "jsonPath": ".a[?"}]),
        "additionalPrinterColumns[0].jsonPath: Invalid value",
    ),
    "a property without a type": (
        a_definition(schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}),
        "properties[spec].type: Required value: must not be empty for specified object fields",
    ),
}


@pytest.mark.parametrize(("definition", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_a_definition_is_refused_with(store: Any, definition: dict[str, Any], sentence: str):
    document = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition}
    with pytest.raises(StatusError) as refused:
        store.create(document)
    assert sentence in refused.value.message


def test_an_approved_definition_in_a_protected_group_is_accepted(store: Any):
    definition = a_definition("scheduling.sigs.k8s.io")
    definition["metadata"]["annotations"] = {"api-approved.kubernetes.io": "https://github.com/example/pull/1"}
    assert store.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **definition})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["spec", "team", "x"]), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(["spec", "status", "x"]), values))
def test_pruning_and_defaulting_settle(document: dict[str, Any]):
    prune(document, SCHEMA)
    fill_defaults(document, SCHEMA)
    before = repr(document)
    assert prune(document, SCHEMA) == []
    fill_defaults(document, SCHEMA)
    assert repr(document) == before
    check(document, SCHEMA)
