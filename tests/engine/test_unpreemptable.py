"""What is computed for all nodes at once equals a dry run of each."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.builders import a_profile, a_state, made

from mooring.engine import decide
from mooring.framework import Plugin, Reads, Refusal, Rejection, Rejections
from mooring.objects.placed import placed
from mooring.plugins.default.node_ports import NodePorts
from mooring.plugins.default.node_resources_fit import NodeResourcesFit
from mooring.plugins.default.node_unschedulable import NodeUnschedulable
from mooring.state import State
from mooring.testing import a_node_object, a_plugin, a_pod

PODS = st.builds(
    lambda cpu, memory, priority, ports: a_pod(cpu=cpu, memory=f"{memory}Gi", priority=priority, ports=ports),
    st.integers(0, 4),
    st.integers(0, 3),
    st.integers(0, 4),
    st.sampled_from([(), (), (80,)]),
)
NODES = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 4), st.lists(PODS, max_size=4)), min_size=1, max_size=4)


def computed(state: State, pod: Any) -> tuple[dict[str, Refusal], dict[str, Refusal | None]]:
    """What is computed at once, and each node's dry run."""
    at_once: dict[str, Refusal] = {}
    one_by_one: dict[str, Refusal | None] = {}

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Refusal:
        nodes = list(refused.resolvable_nodes())
        at_once.update(what_if.unpreemptable(pod, nodes))
        for node in nodes:
            with what_if.without(node, [each for each in node.pods if each.priority < pod.priority]):
                one_by_one[node.name] = what_if.refusal(pod, node)
        return Refusal()

    filters = [a_plugin(cls) for cls in (NodeUnschedulable, NodePorts, NodeResourcesFit)]
    decide(a_profile(*filters, made("Look", post_filter=post_filter)), pod, state)
    return at_once, one_by_one


@given(NODES, PODS, st.lists(st.tuples(PODS, st.integers(0, 3)), max_size=2))
def test_it_agrees_with_every_dry_run(nodes, pod, nominated):
    state = State()
    for number, (cpu, limit, running) in enumerate(nodes):
        state.set_node(a_node_object(f"n{number}", cpu=cpu, memory="4Gi", pods=limit))
        for each in running:
            state.set_pod(
                placed(a_pod(uid=each.uid, cpu=each.request("cpu") // 1000, priority=each.priority), f"n{number}")
            )
    for waiting, node in nominated:
        state.nominations.set(waiting, f"n{node}")
    at_once, one_by_one = computed(state, pod)
    for node, refusal in at_once.items():
        assert one_by_one[node] == refusal
    if not pod.spec.containers[0].ports and not nominated:
        assert at_once == {node: refusal for node, refusal in one_by_one.items() if refusal is not None}


def test_pods_that_come_and_go_are_noticed():
    state = a_state("n")
    low, high = a_pod(cpu="2", priority=0), a_pod(cpu="2", priority=9)
    state.set_pod(placed(low, "n"))
    state.set_pod(placed(high, "n"))
    wanted = a_pod("wanted", cpu="3", priority=5)
    assert computed(state, wanted)[0] == {"n": Rejection("Insufficient cpu")}
    state.remove_pod(high.uid)
    state.set_pod(placed(a_pod(cpu="1", priority=0), "n"))
    assert computed(state, wanted)[0] == {}
    state.set_pod(placed(a_pod(uid=low.uid, cpu="2", priority=9), "n"))
    assert computed(state, wanted)[0] == {"n": Rejection("Insufficient cpu")}


class CountsPods(Plugin):
    """Reads what is not known without the pods of lower priority."""

    reads = Reads.PODS

    def filter(self, pod: Any, node: Any, cycle: Any) -> None: ...

    def filter_nodes(self, pod: Any, nodes: Any, cycle: Any) -> Any:
        yield Rejections(nodes.where_port_taken([("0.0.0.0", "TCP", 80)]), "taken")


def test_a_rule_whose_result_is_not_computable_ends_it():
    state = a_state("n")
    state.set_pod(placed(a_pod(cpu="4", priority=0, ports=[80]), "n"))
    computed: list[Any] = []

    def post_filter(pod: Any, refused: Any, what_if: Any) -> Refusal:
        computed.append(what_if.unpreemptable(pod, list(refused.resolvable_nodes())))
        return Refusal()

    profile = a_profile(CountsPods(), a_plugin(NodeResourcesFit), made("Look", post_filter=post_filter))
    decide(profile, a_pod(cpu="5", priority=1), state)
    decide(profile, a_pod(cpu="1", priority=1), state)
    assert computed == [{}, {}]
