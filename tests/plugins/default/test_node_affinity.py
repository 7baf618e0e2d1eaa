"""NodeAffinity: selectors, required and preferred terms, affinity added by the operator, and what requeues a pod."""

from __future__ import annotations

import msgspec
import pytest
from tests.plugins.verdicts import requeues, verdict

from mooring.base.errors import Fault, OperatorMistake
from mooring.framework import UNRESOLVABLE, OnlyNodes, Refusal, Skip
from mooring.objects import core
from mooring.plugins.default.node_affinity import CONFLICT, NOT_ENFORCED, NOT_SELECTED, NodeAffinity
from mooring.testing import (
    a_cluster,
    a_cycle,
    a_node,
    a_node_object,
    a_plugin,
    a_pod,
    refused_at_once,
    refused_one_by_one,
    requires,
)

SSD = {"disk": "ssd"}
ENFORCED = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["ours"]}]}]
    }
}


def named(*terms: list[tuple[str, list[str]]]) -> core.Affinity:
    """Required affinity to nodes by name: terms of (operator, names)."""
    return core.Affinity(
        node_affinity=core.NodeAffinity(
            required=core.NodeSelector(
                node_selector_terms=tuple(
                    core.NodeSelectorTerm(
                        match_fields=tuple(
                            core.NodeSelectorRequirement(key="metadata.name", operator=operator, values=tuple(names))
                            for operator, names in term
                        )
                    )
                    for term in terms
                )
            )
        )
    )


CASES = {
    "a matching nodeSelector admits": (a_pod(node_selector=SSD), SSD, None),
    "a nodeSelector that does not match refuses": (a_pod(node_selector=SSD), {"disk": "hdd"}, NOT_SELECTED),
    "any term of the affinity will do": (
        a_pod(affinity=requires([("disk", "In", ["nvme"])], [("disk", "In", ["ssd"])])),
        SSD,
        None,
    ),
    "all expressions of a term must hold": (
        a_pod(affinity=requires([("disk", "Exists", []), ("zone", "Exists", [])])),
        SSD,
        NOT_SELECTED,
    ),
    "selector and affinity must both hold": (
        a_pod(node_selector=SSD, affinity=requires([("zone", "Exists", [])])),
        SSD,
        NOT_SELECTED,
    ),
    "no term matches nothing": (a_pod(affinity=requires()), SSD, NOT_SELECTED),
    "an empty term matches nothing": (a_pod(affinity=requires([])), SSD, NOT_SELECTED),
    "Gt compares numbers": (a_pod(affinity=requires([("gen", "Gt", ["9"])])), {"gen": "10"}, None),
    "text is no number": (a_pod(affinity=requires([("gen", "Gt", ["9"])])), {"gen": "ten"}, NOT_SELECTED),
}


@pytest.mark.parametrize(("pod", "labels", "reason"), CASES.values(), ids=CASES.keys())
def test_required_terms(pod, labels, reason):
    expected = None if reason is None else (UNRESOLVABLE, (reason,))
    assert verdict(a_plugin(NodeAffinity).filter(pod, a_node(labels=labels), a_cycle(pod))) == expected


@pytest.mark.parametrize(
    ("labels", "reason"), [({"pool": "ours"} | SSD, None), (SSD, NOT_ENFORCED), ({"pool": "ours"}, NOT_SELECTED)]
)
def test_affinity_added_by_the_operator_counts_besides_the_pods_own(labels, reason):
    pod = a_pod(node_selector=SSD)
    refusal = a_plugin(NodeAffinity, added_affinity=ENFORCED).filter(pod, a_node(labels=labels), a_cycle(pod))
    assert verdict(refusal) == (None if reason is None else (UNRESOLVABLE, (reason,)))


PRE_FILTER = {
    "nothing to match: skip": (a_pod(), Skip()),
    "a selector: look at all nodes": (a_pod(node_selector=SSD), None),
    "names in every term: look at those": (
        a_pod(affinity=named([("In", ["a"])], [("In", ["b"])])),
        OnlyNodes(frozenset({"a", "b"})),
    ),
    "a term without a name: look at all nodes": (a_pod(affinity=named([("In", ["a"])], [("NotIn", ["b"])])), None),
    "names that exclude each other": (
        a_pod(affinity=named([("In", ["a"]), ("In", ["b"])])),
        Refusal(CONFLICT, code=UNRESOLVABLE),
    ),
}


@pytest.mark.parametrize(("pod", "expected"), PRE_FILTER.values(), ids=PRE_FILTER.keys())
def test_pre_filter(pod, expected):
    assert a_plugin(NodeAffinity).pre_filter(pod, a_cycle(pod)) == expected


def preferring(*terms: tuple[int, str, str]) -> core.Affinity:
    return core.Affinity(
        node_affinity=core.NodeAffinity(
            preferred=tuple(
                core.PreferredSchedulingTerm(
                    weight=weight,
                    preference=core.NodeSelectorTerm(
                        match_expressions=(core.NodeSelectorRequirement(key=key, operator="In", values=(value,)),)
                    ),
                )
                for weight, key, value in terms
            )
        )
    )


def test_the_weights_of_matching_preferences_add_up():
    pod = a_pod(affinity=preferring((10, "disk", "ssd"), (5, "zone", "a"), (1, "zone", "b")))
    plain, added = a_plugin(NodeAffinity), preferring((100, "disk", "ssd")).node_affinity
    node = a_node(labels=SSD | {"zone": "a"})
    assert plain.score(pod, node, a_cycle(pod)) == 15
    assert a_plugin(NodeAffinity, added_affinity=added).score(pod, node, a_cycle(pod)) == 115


def test_a_pod_without_preferences_is_not_scored():
    assert a_plugin(NodeAffinity).pre_score(a_pod(), a_cycle(a_pod()).nodes, a_cycle(a_pod())) == Skip()


WAKING = {
    "a new node that matches": (None, SSD, True),
    "a new node that does not": (None, {}, False),
    "a node that began to match": ({}, SSD, True),
    "a node that matched before": (SSD, SSD | {"new": "label"}, False),
}


@pytest.mark.parametrize(("before", "after", "expected"), WAKING.values(), ids=WAKING.keys())
def test_what_wakes_a_refused_pod(before, after, expected):
    shown = None if before is None else a_node_object(labels=before)
    pod = a_pod(node_selector=SSD)
    assert requeues(a_plugin(NodeAffinity), pod, shown, a_node_object(labels=after)) is expected
    assert not requeues(a_plugin(NodeAffinity, added_affinity=ENFORCED), pod, shown, a_node_object(labels=after))


def test_terms_that_cannot_be_understood_are_named_by_their_path():
    wrong = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near"}]}]
        },
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["many"]}]}},
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["many"]}]}},
        ],
    }
    with pytest.raises(OperatorMistake) as raised:
        a_plugin(NodeAffinity, added_affinity=msgspec.convert(wrong, core.NodeAffinity))
    assert [problem.path.rpartition("Execution")[2] for problem in raised.value.problems] == [
        ".nodeSelectorTerms[0].matchExpressions[0].operator",
        "[1].matchExpressions[0].values[0]",
    ]


def wants(key: str, operator: str, *values: str) -> core.NodeSelectorRequirement:
    return core.NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))


NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NO_INTEGER = "for 'Gt', 'Lt' operators, the value must be an integer"
UNREADABLE = {
    "a bound that is no number": (wants("num", "Gt", "many"), f'values[0]: Invalid value: "many": {NO_INTEGER}'),
    "a bound beyond 64 bits": (wants("num", "Lt", "9" * 20), f'values[0]: Invalid value: "{"9" * 20}": {NO_INTEGER}'),
    "two bounds": (
        wants("num", "Lt", "1", "2"),
        """values: Invalid value: ["1","2"]: for 'Gt', 'Lt' operators, exactly one value is required""",
    ),
    "no bound": (
        wants("num", "Gt"),
        "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required",
    ),
    "an unknown operator": (
        wants("num", "Near", "a"),
        'operator: Unsupported value: "Near": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"',
    ),
    "nothing to be in": (
        wants("num", "NotIn"),
        "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
    ),
    "values that Exists has no use for": (
        wants("num", "Exists", "a"),
        'values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
    ),
    "a key that is no name": (wants("bad key", "In", "5"), f'key: Invalid value: "bad key": {NAME_RULE}'),
    "a value that no label can have": (
        wants("num", "In", "5", "a b"),
        f'values[1][num]: Invalid value: "a b": {VALUE_RULE}',
    ),
    "a sign that no label can begin with": (
        wants("num", "Gt", "+3"),
        f'values[0][num]: Invalid value: "+3": {VALUE_RULE}',
    ),
}


@pytest.mark.parametrize(("part", "mistake"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_preference_that_cannot_be_read_fails_the_attempt_in_kube_schedulers_words(part, mistake):
    term = core.NodeSelectorTerm(match_expressions=(wants("num", "Exists"), part))
    preferred = [core.PreferredSchedulingTerm(weight=3, preference=term)]
    pod = a_pod(affinity=core.Affinity(node_affinity=core.NodeAffinity(preferred=tuple(preferred))))
    cluster = a_cluster(a_node("a"), a_node("b"), plugins=[a_plugin(NodeAffinity)])
    fault = cluster.decide(pod).fault
    assert str(fault) == f'running PreScore plugin "NodeAffinity": [0].matchExpressions[1].{mistake}'


@pytest.mark.parametrize(("part", "mistake"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_preference_without_weight_is_not_read(part, mistake):
    term = core.NodeSelectorTerm(match_expressions=(part,))
    preferred = [core.PreferredSchedulingTerm(weight=0, preference=term)]
    pod = a_pod(affinity=core.Affinity(node_affinity=core.NodeAffinity(preferred=tuple(preferred))))
    assert a_plugin(NodeAffinity).pre_score(pod, a_cycle(pod).nodes, a_cycle(pod)) is None


@pytest.mark.parametrize(("part", "mistake"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_required_term_that_cannot_be_read_matches_no_node_and_leaves_the_others_alone(part, mistake):
    terms = [core.NodeSelectorTerm(match_expressions=(part,))]
    node, plugin = a_node(labels={"num": "5"}), a_plugin(NodeAffinity)

    def rejections() -> object:
        required = core.NodeSelector(node_selector_terms=tuple(terms))
        pod = a_pod(affinity=core.Affinity(node_affinity=core.NodeAffinity(required=required)))
        one_by_one = refused_one_by_one(plugin, pod, cluster := a_cluster(node))
        assert refused_at_once(plugin, pod, cluster) == one_by_one
        return one_by_one

    assert rejections() == {"node": (UNRESOLVABLE, (NOT_SELECTED,))}
    terms.append(core.NodeSelectorTerm(match_expressions=(wants("num", "In", "5"),)))
    assert rejections() == {}


def test_every_mistake_is_reported_once_and_all_of_them_in_brackets():
    fields = [wants("metadata.name", "In", "n0", "n1"), wants("metadata.name", "Exists")]
    term = core.NodeSelectorTerm(match_expressions=(wants("num", "Gt", "many"),), match_fields=tuple(fields))
    preferred = [core.PreferredSchedulingTerm(weight=1, preference=term)]
    pod = a_pod(affinity=core.Affinity(node_affinity=core.NodeAffinity(preferred=tuple(preferred))))
    with pytest.raises(Fault) as raised:
        a_plugin(NodeAffinity).pre_score(pod, a_cycle(pod).nodes, a_cycle(pod))
    assert str(raised.value) == (
        f'[[0].matchExpressions[0].values[0]: Invalid value: "many": {NO_INTEGER}, '
        '[0].matchFields[0].values: Invalid value: ["n0","n1"]: must have one element, '
        '[0].matchFields[1].operator: Unsupported value: "Exists": supported values: "In", "NotIn"]'
    )
