"""Extenders: HTTP services that take part in decisions."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.files import a_file, configuration, mistakes

from mooring.config import Extender, ExtenderTls, ManagedResource


def extenders(*written: dict[str, Any]) -> tuple[Extender, ...]:
    return configuration(a_file(extenders=list(written))).extenders


def test_every_field_is_read():
    assert extenders(
        {
            "urlPrefix": "https://extender/v1",
            "filterVerb": "filter",
            "preemptVerb": "preempt",
            "prioritizeVerb": "prioritize",
            "bindVerb": "bind",
            "weight": 3,
            "enableHTTPS": True,
            "tlsConfig": {
                "insecure": True,
                "serverName": "extender",
                "certFile": "/cert",
                "keyFile": "/key",
                "caFile": "/ca",
                "certData": "Y2VydA==",
                "keyData": "a2V5",
                "caData": "Y2E=",
            },
            "httpTimeout": "30s",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
            "ignorable": True,
        }
    ) == (
        Extender(
            "https://extender/v1",
            "filter",
            "preempt",
            "prioritize",
            "bind",
            3,
            True,
            ExtenderTls(True, "extender", "/cert", "/key", "/ca", b"cert", b"key", b"ca"),
            30.0,
            True,
            (ManagedResource("example.com/gpu", True),),
            True,
        ),
    )


def test_what_is_not_given_has_its_default():
    assert extenders({"urlPrefix": "http://a", "httpTimeout": "0s"}) == (Extender("http://a", timeout_seconds=5.0),)


def test_those_that_may_be_ignored_come_last_and_keep_their_order():
    found = extenders(
        {"urlPrefix": "a", "ignorable": True},
        {"urlPrefix": "b"},
        {"urlPrefix": "c", "ignorable": True},
        {"urlPrefix": "d"},
    )
    assert [extender.url_prefix for extender in found] == ["b", "d", "a", "c"]


def managing(*names: str) -> dict[str, Any]:
    return {"managedResources": [{"name": name} for name in names]}


WRONG: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "scores without weight": (
        [{"prioritizeVerb": "p"}],
        "extenders[0].weight",
        "must have a positive weight applied to it",
    ),
    "a weight below zero": (
        [{"prioritizeVerb": "p", "weight": -1}],
        "extenders[0].weight",
        "must have a positive weight applied to it",
    ),
    "two binders": (
        [{"bindVerb": "a"}, {"bindVerb": "b"}],
        "extenders[1].bindVerb",
        "only one extender can implement bind: found 2 extenders implementing bind",
    ),
    "a native resource": ([managing("cpu")], "extenders[0].managedResources[0].name", "invalid extended resource name"),
    "a resource of kubernetes": (
        [managing("kubernetes.io/x")],
        "extenders[0].managedResources[0].name",
        "invalid extended resource name",
    ),
    "a resource twice": (
        [managing("example.com/a"), managing("example.com/a")],
        "extenders[1].managedResources[0].name",
        "duplicate extender managed resource name",
    ),
    "no base64": ([{"tlsConfig": {"caData": "?"}}], "extenders[0].tlsConfig.caData", "must be base64"),
    "a timeout that is a number": ([{"httpTimeout": 5}], "extenders[0].httpTimeout", "must be a duration"),
    "an unknown field": ([{"urlprefix": "a"}], "extenders[0].urlprefix", 'Did you mean "urlPrefix"?'),
    "an unknown field of tls": ([{"tlsConfig": {"ca": ""}}], "extenders[0].tlsConfig.ca", "unknown field"),
    "a word": (["http://a"], "extenders[0]", "must be a mapping"),  # type: ignore[list-item]
}


@pytest.mark.parametrize(("written", "path", "message"), WRONG.values(), ids=WRONG.keys())
def test_extenders_that_cannot_be(written, path, message):
    found = mistakes(a_file(extenders=written))
    assert list(found) == [path]
    assert message in found[path]
