"""Services in memory behave as the contract requires, and record what a plugin did with them."""

from __future__ import annotations

from typing import Annotated

import pytest

from mooring.base.errors import Fault, OperatorMistake, StateMissing
from mooring.framework import (
    Args,
    Binder,
    Bound,
    Cycle,
    Http,
    Log,
    Meta,
    NodeView,
    Plugin,
    Pod,
    PodsWhere,
    PodWriter,
    Published,
    Skip,
    WaitingPod,
)
from mooring.testing import Services, a_cycle, a_node, a_plugin, a_pod


class ShyArgs(Args):
    shyness: Annotated[int, Meta(ge=0, le=10)] = 3
    nick_name: str = ""

    def mistakes(self):
        if self.nick_name == "Bob":
            yield "nickName", "Bob is not shy"


class Shy(Plugin):
    def __init__(self, args: ShyArgs, log: Log) -> None:
        self.args = args
        log.v(4).info("built", shyness=args.shyness)

    def pre_filter(self, pod: Pod, cycle: Cycle) -> Skip:
        return Skip()


def test_arguments_are_given_by_their_python_names():
    assert a_plugin(Shy, shyness=7, nick_name="Al").args == ShyArgs(shyness=7, nick_name="Al")


@pytest.mark.parametrize(
    ("arguments", "complaint"), [({"shyness": 11}, "shyness"), ({"shy": 1}, "shy"), ({"nick_name": "Bob"}, "nickName")]
)
def test_wrong_arguments_are_refused_as_from_a_file(arguments, complaint):
    with pytest.raises(OperatorMistake, match=complaint):
        a_plugin(Shy, **arguments)


@pytest.mark.parametrize(("verbosity", "messages"), [(4, ["built"]), (3, [])])
def test_the_log_keeps_its_lines_up_to_its_verbosity(verbosity, messages):
    services = Services(verbosity=verbosity)
    a_plugin(Shy, services)
    assert services.log.messages == messages


def test_state_that_a_skip_did_not_leave_is_missing():
    with pytest.raises(StateMissing, match=r"Shy\.pre_filter"):
        a_cycle(a_pod()).filter_state(a_plugin(Shy))


def test_a_constructor_that_requests_an_unknown_type_is_rejected():
    class Greedy(Plugin):
        def __init__(self, everything: dict[str, str]) -> None: ...

        def permit(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...

    with pytest.raises(OperatorMistake, match="everything"):
        a_plugin(Greedy)


def test_outside_data_has_an_age_by_the_clock_of_the_test():
    services = Services(published={int: 7})
    services.clock.advance(5)
    published: Published[int] = services.published(int)
    assert (published.latest, published.age, published.version) == (7, 5, 1)


async def test_http_responds_from_the_table_and_records_requests():
    http: Http = Services(http={"http://x": [1, 2]}).http
    assert (await http.get("http://x", params={"q": "1"})).json() == [1, 2]
    with pytest.raises(Fault, match="http://y"):
        await http.get("http://y")


def test_a_waiting_pod_goes_when_all_plugins_have_allowed_it():
    waiting, pod = Services().waiting_pods, a_pod("web", uid="1")
    waiting.put(pod, "node", "A")
    waiting.put(pod, "node", "B")
    assert waiting.allow("1", "A")
    assert list(waiting) == [WaitingPod(pod, "node", frozenset({"B"}))]
    assert waiting.allow("1", "B")
    assert not waiting.allow("1", "B")
    assert waiting.allowed == ["web"]


def test_pods_are_found_by_their_labels_placed_or_pending():
    services = Services(pods=[a_pod("a", labels={"x": "1"}), a_pod("b", labels={"x": "1"}, node="n"), a_pod("c")])
    where = PodsWhere.labelled({"x": "1"})
    assert [pod.name for pod in services.state.pending(where)] == ["a"]
    assert [pod.name for pod in services.state.placed(where)] == ["b"]


class Scribe(Plugin):
    """Writes to pods in every way there is."""

    def __init__(self, binder: Binder, pods: PodWriter) -> None:
        self._binder, self._pods = binder, pods

    def reserve(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        cycle.add_to_binding(self, annotations={"reserved-on": node.name}, labels={"reserved": "yes"})

    async def pre_bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> None:
        await self._pods.patch(pod, annotations={"old": None, "new": node.name})
        await self._pods.patch(pod, labels={"patched": "yes"})

    async def bind(self, pod: Pod, node: NodeView, cycle: Cycle) -> Bound:
        await self._binder.bind(pod, node.name, annotations={"bound-to": node.name}, labels={"bound": "yes"})
        return Bound()


async def test_what_a_plugin_wrote_to_pods_can_be_read():
    services, pod, node = Services(), a_pod("web", annotations={"old": "1", "kept": "1"}), a_node("node-1")
    scribe, cycle = a_plugin(Scribe, services), a_cycle(pod)
    scribe.reserve(pod, node, cycle)
    await scribe.pre_bind(pod, node, cycle)
    await scribe.bind(pod, node, cycle)
    assert (cycle.added_to_binding.annotations, cycle.added_to_binding.labels) == (
        {"reserved-on": "node-1"},
        {"reserved": "yes"},
    )
    written = services.pod_writer.written["default/web"]
    assert (written.annotations, written.labels) == ({"kept": "1", "new": "node-1"}, {"patched": "yes"})
    assert services.binder.bound == [("default/web", "node-1")]
    assert services.binder.annotations == {"default/web": {"bound-to": "node-1"}}
    assert services.binder.labels == {"default/web": {"bound": "yes"}}


async def test_writes_fail_as_the_test_configures_and_where_the_api_server_would_refuse_them():
    services, pod = Services(), a_pod("web")
    with pytest.raises(Fault, match='label "a b"'):
        await services.pod_writer.patch(pod, labels={"a b": "c"})
    with pytest.raises(Fault, match='annotation "a b"'):
        await services.binder.bind(pod, "node-1", annotations={"a b": "c"})
    services.pod_writer.failure = Fault("away")
    with pytest.raises(Fault, match="away"):
        await services.pod_writer.patch(pod, labels={"a": "b"})
    assert (services.binder.bound, services.pod_writer.written) == ([], {})
