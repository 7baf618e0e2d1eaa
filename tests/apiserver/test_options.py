"""Query parameters: decoded as kube-apiserver decodes them."""

from __future__ import annotations

from typing import Any

import pytest
from multidict import MultiDict
from tests.apiserver.builders import PODS, a_config_map
from tests.apiserver.conftest import Client

from mooring.apiserver.options import boolean, delete_options, list_options, revision_of, whole_number, write_options
from mooring.apiserver.status import StatusError

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "t", "1", "yes", "", "2", "no", "off", "null"])
async def test_everything_but_zero_and_false_is_true(api: Client, text: str):
    await api.post(MAPS, a_config_map("a"))
    response = await api.get(f"{MAPS}?watch={text}&timeoutSeconds=-1")
    assert (response.code, response.body["type"]) == (200, "ADDED")


@pytest.mark.parametrize("query", ["", "watch=0", "watch=false", "watch=False", "watch=FALSE", "watch=0&watch=1"])
async def test_zero_false_and_absence_are_false(api: Client, query: str):
    assert (await api.get(f"{MAPS}?{query}")).body["kind"] == "ConfigMapList"


def test_a_boolean_that_is_absent_is_neither():
    assert boolean({}, "watch") is None


NUMBERS = {"0": 0, "7": 7, "-1": -1, "+3": 3, "00012": 12, str(2**63 - 1): 2**63 - 1, f"-{2**63}": -(2**63)}


@pytest.mark.parametrize(("text", "number"), NUMBERS.items())
def test_numbers_have_64_bits(text: str, number: int):
    assert whole_number({"limit": text}, "limit") == number


BAD_NUMBERS = ["", "x", "1.0", "1e3", " 1", "1_000", "٣", "²", "0x10", "+-1", str(2**63), "9" * 5000, f"-{2**63 + 1}"]


@pytest.mark.parametrize("text", BAD_NUMBERS, ids=lambda text: repr(text)[:20])
@pytest.mark.parametrize("name", ["limit", "timeoutSeconds"])
async def test_what_is_no_number_is_a_bad_request(api: Client, name: str, text: str):
    response = await api.call("GET", f"{MAPS}?{name}={text.replace('+', '%2B')}")
    assert (response.code, response.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("limit", ["-1", "0", "-9223372036854775808", "9223372036854775807", "3"])
async def test_a_limit_that_limits_nothing_lists_everything(api: Client, limit: str):
    for name in ("a", "b", "c"):
        await api.post(MAPS, a_config_map(name))
    response = await api.get(f"{MAPS}?limit={limit}")
    assert (response.code, len(response.body["items"])) == (200, 3)


@pytest.mark.parametrize("seconds", ["-1", "-9223372036854775808"])
async def test_a_watch_whose_time_is_over_ends_at_once(api: Client, seconds: str):
    watching = await api.watch(f"{PODS}?timeoutSeconds={seconds}")
    assert await watching.next() is None


@pytest.mark.parametrize("text", ["-1", "x", "²", "1.5", "٣", str(2**64), "9" * 10_000])
@pytest.mark.parametrize("verb", ["", "&watch=1"])
async def test_a_revision_that_is_no_number_is_refused(api: Client, text: str, verb: str):
    if len(text) > 1000:
        with pytest.raises(StatusError):
            revision_of(text)
        return
    assert 400 <= (await api.get(f"{MAPS}?resourceVersion={text}{verb}")).code < 500


LISTS = {
    "a match without a revision": "resourceVersionMatch=Exact",
    "an unknown match": "resourceVersionMatch=Newer&resourceVersion=1",
    "a match with a continue token": "resourceVersionMatch=NotOlderThan&resourceVersion=1&continue=x",
    "exactly any revision": "resourceVersionMatch=Exact&resourceVersion=0",
    "initial events of a list": "sendInitialEvents=false",
    "initial events without a match": "watch=1&sendInitialEvents=1",
    "a watch's match without initial events": "watch=1&resourceVersionMatch=NotOlderThan",
    "a watch of an exact revision": "watch=1&resourceVersionMatch=Exact&resourceVersion=1&sendInitialEvents=1",
}


@pytest.mark.parametrize("query", LISTS.values(), ids=LISTS.keys())
async def test_options_of_a_list_that_contradict_each_other_are_invalid(api: Client, query: str):
    response = await api.get(f"{MAPS}?{query}")
    assert (response.code, response.message.split('"')[0]) == (422, "ListOptions.meta.k8s.io ")


TOKENS = ["invalid", "e30", "eyJ2IjoxfQ", "AAAA", "é", "////", "W10", "bnVsbA", "=" * 100]
TOKENS += ["eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MWU5OTksInN0YXJ0IjpbImEiLCJiIl19", "MWU5OTk", "W1tbW1tbW1tbW1tb"]


@pytest.mark.parametrize("token", TOKENS)
async def test_a_forged_continue_token_is_a_bad_request(api: Client, token: str):
    assert (await api.get(f"{MAPS}?limit=1&continue={token}")).code == 400


WRITES: dict[str, tuple[list[tuple[str, str]], str]] = {
    "an unknown dry run": ([("dryRun", "Some")], "CreateOptions"),
    "an empty dry run": ([("dryRun", "")], "CreateOptions"),
    "one good and one unknown dry run": ([("dryRun", "All"), ("dryRun", "Some")], "CreateOptions"),
    "an unknown validation": ([("fieldValidation", "Loose")], "UpdateOptions"),
    "a manager with a long name": ([("fieldManager", "é" * 65)], "CreateOptions"),
    "a manager that cannot be printed": ([("fieldManager", "a\nb")], "CreateOptions"),
    "force without apply": ([("force", "true")], "PatchOptions"),
}


@pytest.mark.parametrize(("query", "kind"), WRITES.values(), ids=WRITES.keys())
def test_options_of_a_write_that_are_not_known_are_invalid(query: list[tuple[str, str]], kind: str):
    with pytest.raises(StatusError, match=f"{kind}.meta.k8s.io") as refused:
        write_options(MultiDict(query), kind)
    assert refused.value.code == 422


DELETIONS: dict[str, dict[str, Any]] = {
    "an unknown propagation": {"propagationPolicy": "Sideways"},
    "two ways to orphan": {"propagationPolicy": "Orphan", "orphanDependents": True},
    "an unknown dry run": {"dryRun": ["Some"]},
}


@pytest.mark.parametrize("body", DELETIONS.values(), ids=DELETIONS.keys())
async def test_options_of_a_deletion_that_are_not_known_are_invalid(api: Client, body: dict[str, Any]):
    await api.post(MAPS, a_config_map("a"))
    response = await api.delete(f"{MAPS}/a", body)
    assert (response.code, response.message.split('"')[0]) == (422, "DeleteOptions.meta.k8s.io ")
    assert (await api.get(f"{MAPS}/a")).code == 200


def test_a_deletions_query_counts_only_without_a_body():
    query = MultiDict([("gracePeriodSeconds", "5"), ("orphanDependents", "T"), ("dryRun", "All")])
    options = delete_options(query)
    assert (options.grace_seconds, options.propagation, options.dry_run) == (5, "Orphan", True)
    options = delete_options(query, {"gracePeriodSeconds": 7, "preconditions": {"uid": "1"}})
    assert (options.grace_seconds, options.propagation, options.dry_run, options.uid) == (7, None, False, "1")


def test_without_a_query_all_options_have_their_defaults():
    assert not list_options({}).is_watch
    assert not write_options(MultiDict()).dry_run


@pytest.mark.parametrize("path", ["/version", "/version/"])
async def test_the_version_has_two_paths(api: Client, path: str):
    assert (await api.get(path)).body["major"] == "1"
    assert (await api.post(path, {})).code == 405


NOT_OPEN = ["/versionx", "/version/foo", "/version//", "/healthzz", "/healthz/", "/livez/x", "/readyz/ping", "//readyz"]


@pytest.mark.parametrize("path", NOT_OPEN)
async def test_only_exact_paths_are_open(api: Client, path: str):
    assert (await api.get(path, Authorization="")).code == 401
    assert (await api.get(path)).code == (200 if path == "/readyz/ping" else 404)
