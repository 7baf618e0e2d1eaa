"""How the responses of several extenders are combined, and what an ignorable one may do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest
from msgspec import Raw
from msgspec.structs import force_setattr
from tests.lists import list_into

from mooring.base.errors import OperatorMistake
from mooring.config.model import Extender, ExtenderTls, ManagedResource
from mooring.engine import ExtenderScores
from mooring.framework import UNRESOLVABLE, Pod, Rejection
from mooring.objects.object_store import Present
from mooring.scheduler.extenders.chain import NO_REASON, Extenders, accepted, refusals
from mooring.scheduler.extenders.client import ExtenderClient, ExtenderFault
from mooring.scheduler.extenders.documents import Documents, DocumentStore, trimmed
from mooring.scheduler.extenders.wire import FilterResult
from mooring.testing import a_pod
from mooring.testing.builders import a_node_object

DOCUMENT = Raw(b'{"metadata":{}}')
CAPABLE = Extender("http://x", filter_verb="filter", node_cache_capable=True)
NEEDY = Extender("http://x", filter_verb="filter")

FILTERED: dict[str, tuple[Extender, FilterResult, set[str]]] = {
    "names, from one that knows the nodes": (CAPABLE, FilterResult(node_names=("a",)), {"a"}),
    "names win there over nodes": (CAPABLE, FilterResult(node_names=("a",), nodes=("b",)), {"a"}),
    "nodes, where it gives no names": (CAPABLE, FilterResult(nodes=("b",)), {"b"}),
    "nodes, from one that does not": (NEEDY, FilterResult(nodes=("b",)), {"b"}),
    "its names do not count": (NEEDY, FilterResult(node_names=("a",)), set()),
    "neither is no node": (CAPABLE, FilterResult(), set()),
    "a name twice is that name": (CAPABLE, FilterResult(node_names=("a", "a")), {"a"}),
}


@pytest.mark.parametrize(("config", "response", "passed"), FILTERED.values(), ids=FILTERED.keys())
def test_which_nodes_a_response_lets_through(config, response, passed):
    assert accepted(ExtenderClient(config), response, ["a", "b"]) == passed


@pytest.mark.parametrize("config", [CAPABLE, NEEDY])
def test_a_node_that_was_not_in_the_request_is_an_error(config):
    with pytest.raises(ExtenderFault, match='"moon" which is not found in the input'):
        accepted(ExtenderClient(config), FilterResult(node_names=("moon",), nodes=("moon",)), ["a", "b"])


def test_why_a_node_is_out():
    response = FilterResult(failed={"a": "hot", "b": "hot", "z": "far"}, failed_and_unresolvable={"b": "leaks"})
    assert refusals(response, ["a", "b", "c"]) == {
        "a": Rejection("hot"),
        "b": Rejection("leaks", code=UNRESOLVABLE),
        "c": NO_REASON,
    }


class NoListener:
    """A feed that passes nothing on."""

    def found(self, found: Any) -> None: ...
    def listed(self, present: Present) -> None: ...
    def changed(self, found: Any) -> None: ...
    def deleted(self, found: Any) -> None: ...


class Scripted:
    """Stands where a client stands; responds as it was built to, and records the nodes of each request."""

    def __init__(
        self,
        name: str,
        *,
        passing: Iterable[str] | None = None,
        failed: Mapping[str, str] | None = None,
        scores: Mapping[str, int] | None = None,
        **config: Any,
    ) -> None:
        self.name = name
        verbs: dict[str, Any] = {
            "filter_verb": "filter",
            "prioritize_verb": "prioritize",
            "bind_verb": "bind",
            "weight": 1,
        }
        self.config = Extender(name, node_cache_capable=True, **(verbs | config))
        self.is_interested = lambda _: True
        self._passing = passing
        self._failed = failed or {}
        self._scores = scores
        self.requested: list[list[str]] = []
        self.bound: list[str] = []

    async def filter(self, pod: Raw, names: list[str], nodes: list[Raw]) -> FilterResult:
        self.requested.append(list(names))
        if self._passing is None:
            raise ExtenderFault(f"{self.name} is down")
        return FilterResult(node_names=tuple(name for name in names if name in self._passing), failed=self._failed)

    async def prioritize(self, pod: Raw, names: list[str], nodes: list[Raw]) -> Mapping[str, int]:
        if self._scores is None:
            raise ExtenderFault(f"{self.name} is down")
        return self._scores

    async def bind(self, pod: Pod, node: str) -> None:
        if self._passing is None:
            raise ExtenderFault(f"{self.name} is down")
        self.bound.append(node)


def chained(*clients: Scripted) -> Extenders:
    extenders = Extenders([], Documents([]))
    extenders._all = cast(Any, list(clients))
    return extenders


async def test_each_filter_gets_the_nodes_that_the_one_before_left():
    """4.3.8: extenders filter the remaining nodes in order."""
    first, second = Scripted("1", passing="ab", failed={"c": "one"}), Scripted("2", passing="b", failed={"a": "two"})
    refused = await chained(first, second).filter(a_pod(), ["a", "b", "c"])
    assert refused == {"c": Rejection("one"), "a": Rejection("two")}
    assert (first.requested, second.requested) == ([["a", "b", "c"]], [["a", "b"]])


async def test_when_nothing_is_left_no_other_extender_is_called():
    first, second = Scripted("1", passing=""), Scripted("2", passing="a")
    assert await chained(first, second).filter(a_pod(), ["a"]) == {"a": NO_REASON}
    assert second.requested == []


async def test_one_that_fails_fails_all_unless_it_is_ignorable():
    """4.3.8: extenders filter the remaining nodes in order."""
    good = Scripted("good", passing="a")
    with pytest.raises(ExtenderFault, match="bad is down"):
        await chained(Scripted("bad"), good).filter(a_pod(), ["a", "b"])
    assert good.requested == []
    refused = await chained(Scripted("bad", ignorable=True), good).filter(a_pod(), ["a", "b"])
    assert refused == {"b": NO_REASON}


async def test_scores_come_with_their_weights_and_names_of_their_own():
    extenders = chained(
        Scripted("x", scores={"a": 1}, weight=5),
        Scripted("x", scores={"b": 2}),
        Scripted("down"),
        Scripted("y", scores={}),
    )
    assert await extenders.prioritize(a_pod(), ["a", "b"]) == (
        ExtenderScores("x", 5, {"a": 1}),
        ExtenderScores("x#2", 1, {"b": 2}),
        ExtenderScores("y", 1, {}),
    )


async def test_one_binds_or_the_plugins_do():
    """4.4.6: an extender or the first Bind plugin binds."""
    binder = Scripted("b", passing="")
    assert await chained(Scripted("a", passing="", bind_verb=""), binder).bind(a_pod(), "n")
    assert binder.bound == ["n"]
    assert not await chained(Scripted("down", ignorable=True)).bind(a_pod(), "n")
    with pytest.raises(ExtenderFault, match="is down"):
        await chained(Scripted("down")).bind(a_pod(), "n")


GPU = ManagedResource("example.com/gpu")
INTERESTS: dict[str, tuple[tuple[ManagedResource, ...], Pod, bool]] = {
    "one that manages nothing, in every pod": ((), a_pod(), True),
    "in a pod that requests its resource": ((GPU,), a_pod(requests={"example.com/gpu": "1"}), True),
    "also in none of it": ((GPU,), a_pod(requests={"example.com/gpu": "0"}), True),
    "not in a pod that requests another": ((GPU,), a_pod(cpu="1"), False),
}


@pytest.mark.parametrize(("managed", "pod", "is_interested"), INTERESTS.values(), ids=INTERESTS.keys())
def test_in_which_pods_an_extender_is_interested(managed, pod, is_interested):
    assert ExtenderClient(Extender("http://x", managed_resources=managed)).is_interested(pod) is is_interested


def test_limits_and_init_containers_count_too():
    client = ExtenderClient(Extender("http://x", managed_resources=(GPU,)))
    limited = a_pod()
    force_setattr(limited.spec.containers[0].resources, "limits", {"example.com/gpu": "1"})
    assert client.is_interested(limited)
    prepared = a_pod()
    force_setattr(prepared.spec, "init_containers", limited.spec.containers)
    assert client.is_interested(prepared)


def test_a_password_and_a_query_are_not_shown():
    assert ExtenderClient(Extender("https://me:secret@x.test:8443/api?a=b")).name == "https://x.test:8443/api"


MISTAKES: dict[str, tuple[ExtenderTls, str]] = {
    "a CA and no verification": (ExtenderTls(insecure=True, ca_data=b"x"), "tlsConfig.insecure"),
    "a CA that is none": (ExtenderTls(ca_data=b"x"), "holds no certificate in PEM"),
    "a file that is not there": (ExtenderTls(ca_file="lost.pem"), "lost.pem cannot be read"),
    "a certificate that is none": (ExtenderTls(cert_data=b"x", key_data=b"y"), "holds no certificate in PEM"),
}


@pytest.mark.parametrize(("tls", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_certificates_that_cannot_be_used_are_a_mistake(tls, message):
    with pytest.raises(OperatorMistake, match=message):
        ExtenderClient(Extender("https://x.test", tls=tls))


WANTED: dict[str, tuple[list[Extender], tuple[bool, bool, bool]]] = {
    "one that only binds needs nothing": ([Extender("x", bind_verb="b")], (False, False, False)),
    "one that knows the nodes needs its pods": ([CAPABLE], (True, False, False)),
    "one that does not needs the nodes too": ([CAPABLE, NEEDY], (True, True, False)),
    "and one that preempts so, pods on nodes": ([Extender("x", preempt_verb="p")], (True, False, True)),
}


@pytest.mark.parametrize(("extenders", "kept"), WANTED.values(), ids=WANTED.keys())
def test_which_documents_are_kept(extenders, kept):
    documents = Documents(extenders)
    waiting, placed = a_pod("waiting"), a_pod("placed", node="n")
    for pod in (waiting, placed):
        documents.pods.keep(pod, DOCUMENT)
    documents.nodes.keep(a_node_object("n"), DOCUMENT)
    found = (documents.pods.get(waiting.uid), documents.nodes.get("n"), documents.pods.get(placed.uid))
    assert tuple(each is not None for each in found) == kept


def test_documents_go_with_their_objects():
    kept: DocumentStore[Pod] = DocumentStore(lambda pod: pod.uid, lambda pod: not pod.spec.node_name)
    one, two, three = a_pod("one"), a_pod("two"), a_pod("three")
    for pod in (one, two, three):
        kept.keep(pod, DOCUMENT)
    list_into(kept, [one, two])
    assert len(kept) == 2
    kept.deleted(one)
    assert len(kept) == 1
    force_setattr(two.spec, "node_name", "n")  # it waits no longer
    kept.keep(two, DOCUMENT)
    assert len(kept) == 0


def test_a_document_is_whole_but_for_who_manages_its_fields():
    written = Raw(
        b'{"kind":"Pod","metadata":{"name":"a","managedFields":[{"manager":"x"}],"uid":"1"},"new":{"x":1.50}}'
    )
    assert bytes(trimmed(written)) == b'{"kind":"Pod","metadata":{"name":"a","uid":"1"},"new":{"x":1.50}}'
    assert bytes(trimmed(DOCUMENT)) == bytes(DOCUMENT)
