"""Access, rules and token reviews."""

from __future__ import annotations

from tests.apiserver.conftest import Client


async def test_the_administrator_may_do_everything(api: Client):
    spec = {"resourceAttributes": {"verb": "create", "resource": "pods"}}
    reviews = "/apis/authorization.k8s.io/v1"
    response = await api.post(f"{reviews}/selfsubjectaccessreviews", {"spec": spec})
    assert (response.code, response.body["status"]["allowed"]) == (201, True)
    for groups, is_allowed in ((["system:masters"], True), (["system:unauthenticated"], False), ([], False)):
        response = await api.post(f"{reviews}/subjectaccessreviews", {"spec": spec | {"groups": groups}})
        assert (response.code, response.body["status"]["allowed"]) == (201, is_allowed)
    rules = await api.post(f"{reviews}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}})
    assert rules.body["status"]["resourceRules"][0]["verbs"] == ["*"]
    assert (await api.get(f"{reviews}/selfsubjectaccessreviews")).code == 405


async def test_tokens_are_reviewed(api: Client):
    path = "/apis/authentication.k8s.io/v1/tokenreviews"
    assert (await api.post(path, {"spec": {"token": api.server.token}})).body["status"]["authenticated"]
    assert not (await api.post(path, {"spec": {"token": "other"}})).body["status"]["authenticated"]
    me = await api.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", {})
    assert me.body["status"]["userInfo"]["username"] == "mooring-admin"
