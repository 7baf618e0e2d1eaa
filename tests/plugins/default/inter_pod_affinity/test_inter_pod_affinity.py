"""InterPodAffinity: who must be near, who must be away, what adds to a score. What requeues a pod: `…_waking`."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import normalized, verdict

from mooring.base.errors import Fault, OperatorMistake
from mooring.framework import UNRESOLVABLE, UNSCHEDULABLE, Pod, Refusal, Skip
from mooring.objects import ObjectMeta
from mooring.objects.core import Affinity, Namespace
from mooring.objects.placed import placed
from mooring.objects.selectors import LabelSelector, LabelSelectorRequirement
from mooring.plugins.default.inter_pod_affinity import InterPodAffinity
from mooring.plugins.default.inter_pod_affinity.plugin import NOT_AWAY, NOT_NEAR, NOT_WANTED
from mooring.testing import Cluster, Services, a_cluster, a_cycle, a_node, a_plugin, a_pod, a_term, pod_rules

WEB, DB = {"app": "web"}, {"app": "db"}
NODES = {
    "a1": {"zone": "a", "rack": "1"},
    "a2": {"zone": "a", "rack": "2"},
    "b1": {"zone": "b", "rack": "1"},
    "none": {},
}
NAMESPACES = {"default": {}, "shop": {"team": "red"}, "lab": {"team": "blue"}}


def a_pod_with(affinity: Affinity, **more: object) -> Pod:
    return a_pod(affinity=affinity, **more)  # type: ignore[arg-type]


def another(pod: Pod) -> Pod:
    """Its twin: a table names a pod once, and several of it run."""
    return a_pod(namespace=pod.namespace, labels=pod.labels, affinity=pod.spec.affinity)


def a_situation(running: dict[str, list[Pod]], **arguments: object) -> tuple[InterPodAffinity, Cluster]:
    """Two nodes in zone a, one in zone b, one in no zone; the pods by node; three namespaces."""
    namespaces = [Namespace(metadata=ObjectMeta(name=name, labels=labels)) for name, labels in NAMESPACES.items()]
    services = Services(objects={Namespace: namespaces})
    plugin = a_plugin(InterPodAffinity, services, **arguments)
    nodes = [
        a_node(name, labels=labels, running=[another(pod) for pod in running.get(name, [])])
        for name, labels in NODES.items()
    ]
    return plugin, a_cluster(*nodes, plugins=[plugin], services=services)


def refused(pod: Pod, running: dict[str, list[Pod]]) -> dict[str, str]:
    """The reason per refused node; each unresolvable exactly if it is about nearness."""
    _, cluster = a_situation(running)
    found = {}
    for name, (_, refusal) in cluster.decide(pod).rejections.items():
        code = UNRESOLVABLE if refusal.reasons == (NOT_NEAR,) else UNSCHEDULABLE
        assert verdict(refusal) == (code, refusal.reasons)
        (found[name],) = refusal.reasons
    return found


NEAR_WEB = pod_rules(near=[a_term(WEB)])
AWAY_FROM_WEB = pod_rules(away=[a_term(WEB)])
web, db = a_pod(labels=WEB), a_pod(labels=DB)
everywhere = dict.fromkeys(NODES, NOT_NEAR)

AFFINITY = {
    "near the pods it wants to be near": (
        a_pod_with(NEAR_WEB),
        {"a1": [web]},
        {"b1": NOT_NEAR, "none": NOT_NEAR},
    ),
    "nowhere, if there is no such pod": (a_pod_with(NEAR_WEB), {"a1": [db]}, everywhere),
    "anywhere with the key, if it is the first of its own group": (
        a_pod_with(NEAR_WEB, labels=WEB),
        {"a1": [db]},
        {"none": NOT_NEAR},
    ),
    "a pod of the group on a node without the key does not make a first": (
        a_pod_with(NEAR_WEB, labels=WEB),
        {"none": [web]},
        {"none": NOT_NEAR},
    ),
    "but on a node with one of two keys it does": (
        a_pod_with(pod_rules(near=[a_term(WEB), a_term(WEB, "disk")]), labels=WEB),
        {"a1": [web]},
        everywhere,
    ),
    "a first must match all of its own terms": (
        a_pod_with(pod_rules(near=[a_term(WEB), a_term(DB)]), labels=WEB),
        {},
        everywhere,
    ),
    "one pod must match all terms": (
        a_pod_with(pod_rules(near=[a_term(WEB), a_term({"tier": "front"})])),
        {"a1": [web], "a2": [a_pod(labels={"tier": "front"})], "b1": [a_pod(labels=WEB | {"tier": "front"})]},
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "none": NOT_NEAR},
    ),
    "and be near by every key": (
        a_pod_with(pod_rules(near=[a_term(WEB, "zone"), a_term(WEB, "rack")])),
        {"a1": [web]},
        {"a2": NOT_NEAR, "b1": NOT_NEAR, "none": NOT_NEAR},
    ),
    "though by two keys it may be two pods": (
        a_pod_with(pod_rules(near=[a_term(WEB, "zone"), a_term(WEB, "rack")])),
        {"a2": [web], "b1": [web]},
        {"none": NOT_NEAR},
    ),
    "a term without a selector selects no pod": (a_pod_with(pod_rules(near=[a_term()])), {"a1": [web]}, everywhere),
    "an empty selector selects every pod": (
        a_pod_with(pod_rules(near=[a_term({})])),
        {"b1": [db]},
        {"a1": NOT_NEAR, "a2": NOT_NEAR, "none": NOT_NEAR},
    ),
}

ANTI_AFFINITY = {
    "away from the pods it wants to be away from": (
        a_pod_with(AWAY_FROM_WEB),
        {"a1": [web]},
        {"a1": NOT_AWAY, "a2": NOT_AWAY},
    ),
    "any term is enough": (
        a_pod_with(pod_rules(away=[a_term(WEB), a_term(DB)])),
        {"a1": [web], "b1": [db]},
        {"a1": NOT_AWAY, "a2": NOT_AWAY, "b1": NOT_AWAY},
    ),
    "a pod on a node without the key is away from every pod": (a_pod_with(AWAY_FROM_WEB), {"none": [web]}, {}),
    "its own labels do not matter to it": (a_pod_with(AWAY_FROM_WEB, labels=WEB), {}, {}),
    "away from the pods that want to be away from it": (
        web,
        {"b1": [a_pod_with(AWAY_FROM_WEB)]},
        {"b1": NOT_WANTED},
    ),
    "no anti-affinity applies to a pod that no term selects": (db, {"b1": [a_pod_with(AWAY_FROM_WEB)]}, {}),
    "affinity is reported before anti-affinity, its own before theirs": (
        a_pod_with(pod_rules(near=[a_term(WEB)], away=[a_term(DB, "rack")]), labels=WEB),
        {"a1": [web, db], "a2": [a_pod_with(AWAY_FROM_WEB)]},
        {"a1": NOT_AWAY, "a2": NOT_WANTED, "b1": NOT_NEAR, "none": NOT_NEAR},
    ),
}


@pytest.mark.parametrize(
    ("pod", "running", "reasons"),
    [*AFFINITY.values(), *ANTI_AFFINITY.values()],
    ids=[*AFFINITY.keys(), *ANTI_AFFINITY.keys()],
)
def test_required_terms(pod, running, reasons):
    assert refused(pod, running) == reasons


def by_team(operator: str, *values: str) -> LabelSelector:
    requirement = LabelSelectorRequirement(key="team", operator=operator, values=tuple(values))
    return LabelSelector(match_expressions=(requirement,))


SELECTED_NAMESPACES = {
    "its own, if it names none": ({}, {"default"}),
    "those it names": ({"namespaces": ["shop", "void"]}, {"shop", "void"}),
    "those whose labels it selects": ({"namespace_selector": by_team("In", "red")}, {"shop"}),
    "both": ({"namespaces": ["lab"], "namespace_selector": by_team("In", "red")}, {"lab", "shop"}),
    "all, also unknown ones": ({"namespace_selector": LabelSelector()}, {"default", "shop", "lab", "void"}),
}
OF_MINE_ONLY = {
    # kube-scheduler matches the selector against no labels, after it has looked up the namespaces.
    "all, if no labels would match": ({"namespace_selector": by_team("DoesNotExist")}, set(NAMESPACES) | {"void"}),
    "all, if no labels would match, whatever the labels": (
        {"namespace_selector": by_team("NotIn", "red")},
        set(NAMESPACES) | {"void"},
    ),
}
OF_THEIRS_ONLY = {
    "an unknown namespace has no labels": ({"namespace_selector": by_team("DoesNotExist")}, {"default", "void"}),
    "neither has it red ones": ({"namespace_selector": by_team("NotIn", "red")}, {"default", "lab", "void"}),
}


@pytest.mark.parametrize(
    ("term", "selected"), (SELECTED_NAMESPACES | OF_MINE_ONLY).values(), ids=(SELECTED_NAMESPACES | OF_MINE_ONLY).keys()
)
def test_namespaces_of_the_pods_own_terms(term, selected):
    pod = a_pod_with(pod_rules(away=[a_term(WEB, **term)]))
    found = {name for name in [*NAMESPACES, "void"] if refused(pod, {"b1": [a_pod(namespace=name, labels=WEB)]})}
    assert found == selected


@pytest.mark.parametrize(
    ("term", "selected"),
    (SELECTED_NAMESPACES | OF_THEIRS_ONLY).values(),
    ids=(SELECTED_NAMESPACES | OF_THEIRS_ONLY).keys(),
)
def test_namespaces_of_existing_pods_terms(term, selected):
    carrier = a_pod_with(pod_rules(away=[a_term(WEB, **term)]))
    found = {name for name in [*NAMESPACES, "void"] if refused(a_pod(namespace=name, labels=WEB), {"b1": [carrier]})}
    assert found == selected


def test_namespaces_that_change_are_looked_up_again():
    _, cluster = a_situation({"b1": [a_pod(namespace="lab", labels=WEB)]})
    pod = a_pod_with(pod_rules(away=[a_term(WEB, namespace_selector=by_team("In", "red"))]))
    assert cluster.decide(pod).rejections == {}
    cluster.services.objects(Namespace).put(Namespace(metadata=ObjectMeta(name="lab", labels={"team": "red"})))
    assert set(cluster.decide(pod).rejections) == {"b1"}


def test_counts_follow_pods_and_what_ifs():
    plugin, cluster = a_situation({"a1": [web]})
    pod = a_pod_with(AWAY_FROM_WEB)
    state = plugin.pre_filter(pod, a_cycle(pod, cluster))
    (there,) = cluster.node("a1").pods
    with cluster.state.what_if("a1", without=[there]):
        assert plugin.pre_filter(pod, a_cycle(pod, cluster)) == state, "counts are equal by identity"
        assert plugin.filter(pod, cluster.node("a2"), a_cycle(pod, cluster)) is None
    assert verdict(plugin.filter(pod, cluster.node("a2"), a_cycle(pod, cluster))) == (UNSCHEDULABLE, (NOT_AWAY,))


NEAR = LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="Near"),))

PRE_FILTER = {
    "no terms, and no anti-affinity of others": (a_pod(), Skip()),
    "empty affinity is none": (a_pod_with(Affinity()), Skip()),
    "preferred terms alone are none for a filter": (a_pod_with(pod_rules(rather_away=[(1, a_term(WEB))])), Skip()),
    "a carrier on a node without the key does not count": (a_pod(labels={"app": "nowhere"}), Skip()),
    "a selector that cannot be read": (
        a_pod_with(pod_rules(near=[a_term(NEAR)])),
        Refusal('parsing pod: requiredAffinityTerms: "Near" is not a valid label selector operator', code=UNRESOLVABLE),
    ),
    "also in a preference, also of namespaces": (
        a_pod_with(pod_rules(rather_away=[(1, a_term(WEB, namespace_selector=NEAR))])),
        Refusal(
            'parsing pod: preferredAntiAffinityTerms: "Near" is not a valid label selector operator', code=UNRESOLVABLE
        ),
    ),
}


@pytest.mark.parametrize(("pod", "expected"), PRE_FILTER.values(), ids=PRE_FILTER.keys())
def test_pre_filter(pod, expected):
    carriers = [a_pod_with(pod_rules(away=[a_term({"app": "nowhere"})])), a_pod_with(pod_rules(away=[a_term(NEAR)]))]
    plugin, cluster = a_situation({"none": carriers})
    assert plugin.pre_filter(pod, a_cycle(pod, cluster)) == expected


def test_a_pod_that_cannot_be_read_and_was_not_refused_is_a_fault_at_scoring():
    plugin, cluster = a_situation({})
    pod = a_pod_with(pod_rules(near=[a_term(NEAR)]))
    with pytest.raises(Fault, match=r'^failed to parse pod: requiredAffinityTerms: "Near" is not'):
        plugin.pre_score(pod, cluster.nodes, a_cycle(pod, cluster))


def scores(pod: Pod, running: dict[str, list[Pod]], **arguments: object) -> list[int] | None:
    """Of the nodes in order; None if pre_score skips."""
    plugin, cluster = a_situation(running, **arguments)
    cycle = a_cycle(pod, cluster)
    if isinstance(plugin.pre_score(pod, cluster.nodes, cycle), Skip):
        return None
    return list(plugin.score_nodes(pod, cluster.nodes, cycle).tolist())


LIKES_WEB = pod_rules(rather_near=[(10, a_term(WEB))], rather_away=[(3, a_term(DB, "rack"))])

PREFERENCES = {
    "no pod prefers anything": (a_pod(), {"a1": [web]}, None),
    "no pod that it prefers": (a_pod_with(LIKES_WEB), {"none": [web]}, None),
    "each pod it prefers counts, in its whole domain": (
        a_pod_with(LIKES_WEB),
        {"a1": [web, web], "a2": [db], "b1": [web]},
        [20, 17, 10, 0],
    ),
    "preferences of the pods there count": (web, {"b1": [a_pod_with(LIKES_WEB)]}, [0, 0, 10, 0]),
    "and what they would rather be away from": (db, {"b1": [a_pod_with(LIKES_WEB)]}, [-3, 0, -3, 0]),
    "and what they must be near to, a little": (web, {"b1": [a_pod_with(NEAR_WEB)]}, [0, 0, 1, 0]),
    "weights that cancel out are a score": (
        a_pod_with(pod_rules(rather_near=[(5, a_term(WEB))], rather_away=[(5, a_term(WEB))])),
        {"a1": [web]},
        [0, 0, 0, 0],
    ),
}


@pytest.mark.parametrize(("pod", "running", "expected"), PREFERENCES.values(), ids=PREFERENCES.keys())
def test_preferences(pod, running, expected):
    assert scores(pod, running) == expected


def test_the_weight_of_what_others_must_be_near_to_is_an_argument():
    running = {"b1": [a_pod_with(NEAR_WEB)]}
    assert scores(web, running, hard_pod_affinity_weight=100) == [0, 0, 100, 0]
    assert scores(web, running, hard_pod_affinity_weight=0) is None
    for weight in (-1, 101):
        with pytest.raises(OperatorMistake):
            a_plugin(InterPodAffinity, hard_pod_affinity_weight=weight)


def test_what_others_prefer_can_be_ignored_for_pods_without_preferences():
    running = {"b1": [a_pod_with(LIKES_WEB)]}
    ignoring = {"ignore_preferred_terms_of_existing_pods": True}
    assert scores(web, running, **ignoring) is None
    assert scores(a_pod_with(LIKES_WEB, labels=WEB), running, **ignoring) == [0, 0, 10, 0]


def test_the_lowest_score_becomes_0_and_the_highest_100():
    _, cluster = a_situation({"a1": [a_pod(labels=WEB) for _ in range(3)], "b1": [a_pod(labels=DB)]})
    pod = a_pod_with(pod_rules(rather_near=[(10, a_term(WEB))], rather_away=[(1, a_term(DB))]))
    # -1 → 0 and 30 → 100: a node without a zone, 0, lies at 3.22
    assert normalized(cluster.decide(pod), "InterPodAffinity") == {"a1": 100, "a2": 100, "b1": 0, "none": 3}


def test_equal_scores_become_0():
    _, cluster = a_situation({"a1": [web]})
    pod = a_pod_with(pod_rules(rather_near=[(5, a_term(WEB))], rather_away=[(5, a_term(WEB))]))
    assert set(normalized(cluster.decide(pod), "InterPodAffinity").values()) == {0}


def test_many_templates_do_not_fill_the_memory(monkeypatch):
    from mooring.plugins.default.inter_pod_affinity import affinity_terms

    monkeypatch.setattr(affinity_terms, "MOST_CACHED_BYTES", 4 * affinity_terms.TERM_BYTES)
    plugin, cluster = a_situation({"a1": [web]})
    for number in range(10):
        pod = a_pod_with(pod_rules(away=[a_term({"app": str(number)})]))
        plugin.pre_filter(pod, a_cycle(pod, cluster))
    assert len(plugin._terms._known) == 3  # each a little heavier than a term
    placed_again = a_pod_with(AWAY_FROM_WEB)
    cluster.state.set_pod(placed(placed_again, "a1"))
    assert set(cluster.decide(a_pod(labels=WEB)).rejections) == {"a1", "a2"}
