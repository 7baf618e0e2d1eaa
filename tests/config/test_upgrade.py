"""Old versions: converted to v1; what is lost is a warning, what cannot be expressed is an error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.config.default_plugins import DEFAULTS, EVERYTHING, a_registry
from tests.config.files import a_file, a_profile_file, load, mistakes, names, profile, warnings, weights
from tests.config.test_plugin_sets import on

from mooring.base.documents import read_tree
from mooring.base.errors import OperatorMistake
from mooring.config import convert
from mooring.framework import Point
from mooring.plugins.default.node_affinity import NodeAffinityArgs
from mooring.plugins.default.node_resources_fit import NodeResourcesFitArgs

SCORE_BY_LABEL = """
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: scorebylabel
  plugins:
    score:
      enabled:
      - name: ScoreByLabel
      disabled:
        - name: "*" # disable all default plugins
  pluginConfig:
    - name: ScoreByLabel
      args:
        labelKey: "score-by-label"
"""

SAMPLE = """
apiVersion: kubescheduler.config.k8s.io/v1beta1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: false
profiles:
- schedulerName: sample-scheduler
  plugins:
    filter:
      enabled:
      - name: sample2
    preScore:
      enabled:
        - name: sample2
      disabled:
        - name: "*"
"""


def test_a_v1beta2_profile_that_scores_by_label_alone():
    loaded = load(SCORE_BY_LABEL)
    found = loaded.configuration.profiles[0]
    assert (loaded.version, loaded.warnings) == ("v1beta2", ())
    assert weights(found) == {"ScoreByLabel": 1}
    assert found.args["ScoreByLabel"].label_key == "score-by-label"  # type: ignore[attr-defined]
    assert names(found, Point.FILTER) == [name for name, entry in DEFAULTS.items() if Point.FILTER in entry.points]
    assert loaded.configuration.leader_election.explicit
    assert not loaded.configuration.leader_election.leader_elect


def test_a_v1beta1_profile_whose_scores_would_fail_for_want_of_pre_score():
    loaded = load(SAMPLE)
    found = loaded.configuration.profiles[0]
    assert names(found, Point.FILTER)[-1] == "sample2"
    assert names(found, Point.PRE_SCORE) == ["sample2"]
    messages = {warning.path: warning.message for warning in loaded.warnings}
    assert "preScore is off for TaintToleration" in messages["profiles[0].plugins.preScore"]
    assert next(warning.line for warning in loaded.warnings if "preScore" in warning.path) == 12


OLD_WEIGHTS: dict[str, tuple[str, Any, dict[str, int]]] = {
    "v1beta1 kept": ("v1beta1", None, {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}),
    "v1beta2 kept": ("v1beta2", None, {"TaintToleration": 1, "NodeAffinity": 1, "InterPodAffinity": 1}),
    "v1beta3 has those of v1": ("v1beta3", None, {"TaintToleration": 3, "NodeAffinity": 2, "InterPodAffinity": 2}),
    "a weight that is written counts": ("v1beta2", {"score": on(("NodeAffinity", 9))}, {"NodeAffinity": 9}),
    "what is disabled stays so": (
        "v1beta2",
        {"score": on(off=("NodeAffinity",))},
        {"TaintToleration": 1, "InterPodAffinity": 1},
    ),
    "a star disables all": ("v1beta2", {"score": on("ImageLocality", off=("*",))}, {"ImageLocality": 1}),
}


@pytest.mark.parametrize(("version", "plugins", "expected"), OLD_WEIGHTS.values(), ids=OLD_WEIGHTS.keys())
def test_old_default_weights(version, plugins, expected):
    found = weights(profile(a_profile_file(version, plugins)))
    assert {name: found.get(name) for name in expected} == expected
    if plugins and "disabled" in plugins["score"] and plugins["score"]["disabled"]:
        assert plugins["score"]["disabled"][0]["name"] not in found


def test_old_weights_are_warned_of_once():
    text = a_file("v1beta2", profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}])
    assert [warning.message for warning in load(text).warnings] == [
        "weight 1 is kept for TaintToleration, NodeAffinity, InterPodAffinity; the defaults of v1 are "
        "TaintToleration 3, NodeAffinity 2, InterPodAffinity 2"
    ]


def test_old_weights_are_kept_in_the_default_profile_too():
    assert weights(profile(a_file("v1beta2")))["TaintToleration"] == 1


def test_no_weight_is_written_for_a_plugin_that_does_not_exist():
    registry = a_registry(without=["InterPodAffinity"])
    assert weights(profile(a_file("v1beta2"), registry))["NodeAffinity"] == 1


LEAST, MOST, RATIO = "NodeResourcesLeastAllocated", "NodeResourcesMostAllocated", "RequestedToCapacityRatio"
SHAPE = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]

ALLOCATION: dict[str, tuple[Any, Any, int | None, str, list[tuple[str, int]]]] = {
    "by default": (None, None, 1, "LeastAllocated", []),
    "least, with its resources": (
        None,
        {LEAST: {"resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 0}]}},
        1,
        "LeastAllocated",
        [("cpu", 3)],
    ),
    "least, with another weight": ({"score": on((LEAST, 5), off=(LEAST,))}, None, 5, "LeastAllocated", []),
    "most instead": ({"score": on((MOST, 4), off=(LEAST,))}, None, 4, "MostAllocated", []),
    "most alone": ({"score": on(MOST, off=("*",))}, None, 1, "MostAllocated", []),
    "a shape instead": (
        {"score": on((RATIO, 2), off=(LEAST,))},
        {RATIO: {"shape": SHAPE, "resources": [{"name": "cpu", "weight": 5}]}},
        2,
        "RequestedToCapacityRatio",
        [("cpu", 5)],
    ),
    "none": ({"score": on(off=(LEAST,))}, None, None, "LeastAllocated", []),
    "none at all": ({"score": on("ImageLocality", off=("*",))}, None, None, "LeastAllocated", []),
}


@pytest.mark.parametrize(("plugins", "args", "weight", "kind", "resources"), ALLOCATION.values(), ids=ALLOCATION.keys())
def test_allocation_scores_become_strategies_of_node_resources_fit(plugins, args, weight, kind, resources):
    found = profile(a_profile_file("v1beta1", plugins, args))
    assert weights(found).get("NodeResourcesFit") == weight
    fit = found.args["NodeResourcesFit"]
    assert isinstance(fit, NodeResourcesFitArgs)
    assert fit.scoring_strategy.type == kind
    assert [(each.name, each.weight) for each in fit.scoring_strategy.resources] == resources
    assert (fit.scoring_strategy.requested_to_capacity_ratio is not None) == (kind == RATIO)


def test_a_strategy_is_written_beside_the_arguments_that_are_there():
    found = profile(
        a_profile_file(
            "v1beta1",
            {"score": on(MOST, off=(LEAST,))},
            {"NodeResourcesFit": {"ignoredResources": ["example.com/x"]}},
        )
    ).args["NodeResourcesFit"]
    assert isinstance(found, NodeResourcesFitArgs)
    assert (found.ignored_resources, found.scoring_strategy.type) == (["example.com/x"], "MostAllocated")


REFUSED: dict[str, tuple[str, Any, Any, str, str]] = {
    "two allocation scores": (
        "v1beta1",
        {"score": on(MOST)},
        None,
        "profiles[0].plugins.score.enabled[0]",
        "score together",
    ),
    "an allocation score beside its successor": (
        "v1beta1",
        {"score": on("NodeResourcesFit")},
        None,
        "profiles[0].plugins.score.enabled[0]",
        "score together",
    ),
    "no resource counted": (
        "v1beta1",
        None,
        {LEAST: {"resources": [{"name": "cpu", "weight": 0}]}},
        "profiles[0].pluginConfig[0].args.resources",
        "every weight is 0",
    ),
    "an unknown field of old arguments": (
        "v1beta1",
        None,
        {LEAST: {"resource": []}},
        "profiles[0].pluginConfig[0].args.resource",
        'Did you mean "resources"?',
    ),
    "NodeLabel's preferences": (
        "v1beta1",
        {"score": on("NodeLabel")},
        {"NodeLabel": {"presentLabelsPreference": ["a"]}},
        "profiles[0].pluginConfig[0].args.presentLabelsPreference[0]",
        "cannot be converted",
    ),
    "NodeLabel without NodeAffinity": (
        "v1beta1",
        {"filter": on("NodeLabel", off=("*",))},
        {"NodeLabel": {"presentLabels": ["a"]}},
        "profiles[0].pluginConfig[0].args",
        "NodeAffinity is disabled at filter",
    ),
    "ServiceAffinity": (
        "v1beta1",
        {"filter": on("ServiceAffinity")},
        {"ServiceAffinity": {"affinityLabels": ["zone"]}},
        "profiles[0].plugins.filter.enabled[0]",
        "InterPodAffinity",
    ),
    "NodePreferAvoidPods": (
        "v1beta1",
        {"score": on("NodePreferAvoidPods")},
        None,
        "profiles[0].plugins.score.enabled[0]",
        "PreferNoSchedule",
    ),
    "SelectorSpread beside a list of constraints": (
        "v1beta2",
        {"score": on("SelectorSpread")},
        {"PodTopologySpread": {"defaultingType": "List"}},
        "profiles[0].plugins.score.enabled[0]",
        "defaultingType System",
    ),
    "an old plugin in a version that had lost it": (
        "v1beta2",
        {"score": on(MOST)},
        None,
        "profiles[0].plugins.score.enabled[0].name",
        "use NodeResourcesFit with scoringStrategy type MostAllocated",
    ),
    "multiPoint before it was": (
        "v1beta2",
        {"multiPoint": on("ScoreByLabel")},
        None,
        "profiles[0].plugins.multiPoint",
        "it exists since v1beta3, and the file is v1beta2",
    ),
    "preEnqueue before it was": (
        "v1beta1",
        {"preEnqueue": on(off=("*",))},
        None,
        "profiles[0].plugins.preEnqueue",
        "it exists since v1beta2",
    ),
    "scoringStrategy before it was": (
        "v1beta1",
        None,
        {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
        "profiles[0].pluginConfig[0].args.scoringStrategy",
        "it exists since v1beta2",
    ),
}


@pytest.mark.parametrize(("version", "plugins", "args", "path", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_v1_cannot_express_is_refused(version, plugins, args, path, message):
    found = mistakes(a_profile_file(version, plugins, args))
    assert list(found) == [path]
    assert message in found[path]


REFUSED_FIELDS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "a lock that leases cannot see": (
        "v1beta1",
        {"leaderElection": {"resourceLock": "endpoints"}},
        "leaderElection.resourceLock",
        "two would lead",
    ),
    "algorithmSource": ("v1beta1", {"algorithmSource": {"provider": "x"}}, "algorithmSource", "write profiles"),
    "featureGates": ("v1beta2", {"featureGates": {"A": True}}, "featureGates", "--feature-gates"),
    "delayCacheUntilActive": ("v1beta3", {"delayCacheUntilActive": True}, "delayCacheUntilActive", "since v1,"),
    "a percentage per profile": (
        "v1beta3",
        {"profiles": [{"percentageOfNodesToScore": 5}]},
        "profiles[0].percentageOfNodesToScore",
        "since v1,",
    ),
    "disablePreemption in words": ("v1beta1", {"disablePreemption": "yes"}, "disablePreemption", "true or false"),
    "an address that is a number": ("v1beta1", {"healthzBindAddress": 0}, "healthzBindAddress", "must be a string"),
    "a mistake that v1 would refuse too": ("v1beta3", {"parallelism": 0}, "parallelism", "greater than zero"),
}


@pytest.mark.parametrize(("version", "fields", "path", "message"), REFUSED_FIELDS.values(), ids=REFUSED_FIELDS.keys())
def test_fields_that_v1_cannot_express_are_refused(version, fields, path, message):
    found = mistakes(a_file(version, **fields))
    assert list(found) == [path]
    assert message in found[path]


def test_refusals_and_mistakes_come_in_one_run():
    text = a_file("v1beta1", algorithmSource={}, parallelism=0, profiles=[{"plugins": {"score": on(MOST)}}])
    assert set(mistakes(text)) == {"algorithmSource", "parallelism", "profiles[0].plugins.score.enabled[0]"}


WARNED: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "an open port": ("v1beta1", {"metricsBindAddress": "0.0.0.0:10251"}, "metricsBindAddress", "only over HTTPS"),
    "a lock that is half a lease": (
        "v1beta3",
        {"leaderElection": {"resourceLock": "configmapsleases"}},
        "leaderElection.resourceLock",
        'becomes "leases"',
    ),
    "disablePreemption": ("v1beta1", {"disablePreemption": True}, "disablePreemption", "DefaultPreemption disabled"),
    "volume limits": (
        "v1beta3",
        {"profiles": [{"plugins": {"multiPoint": on("EBSLimits")}}]},
        "profiles[0].plugins.multiPoint.enabled[0]",
        "NodeVolumeLimits",
    ),
    "SelectorSpread": (
        "v1beta2",
        {"profiles": [{"plugins": {"score": on("SelectorSpread"), "preScore": on("SelectorSpread")}}]},
        "profiles[0].plugins.preScore.enabled[0]",
        "PodTopologySpread does the same",
    ),
    "unreserve": (
        "v1beta1",
        {"profiles": [{"plugins": {"unreserve": on("VolumeBinding")}}]},
        "profiles[0].plugins.unreserve",
        "merged into reserve",
    ),
    "a default enabled again": (
        "v1beta1",
        {"profiles": [{"plugins": {"score": on("ImageLocality")}}]},
        "profiles[0].plugins.score.enabled[0]",
        "v1beta1 refused this, v1 replaces it",
    ),
    "NodePreferAvoidPods, which was a default": ("v1beta1", {}, "profiles[0]", "NodePreferAvoidPods"),
    "old arguments of what does not score": (
        "v1beta1",
        {"profiles": [{"pluginConfig": [{"name": MOST, "args": {}}]}]},
        "profiles[0].pluginConfig[0].args",
        "does not score",
    ),
}


@pytest.mark.parametrize(("version", "fields", "path", "message"), WARNED.values(), ids=WARNED.keys())
def test_what_is_lost_or_done_otherwise_is_a_warning(version, fields, path, message):
    assert message in warnings(a_file(version, **fields))[path]


QUIET: dict[str, dict[str, Any]] = {
    "no port": {"healthzBindAddress": "", "metricsBindAddress": "127.0.0.1:0"},
    "an old lock without election": {"leaderElection": {"leaderElect": False, "resourceLock": "endpoints"}},
    "preemption left on": {"disablePreemption": False},
    "old plugins disabled": {
        "profiles": [{"plugins": {"score": on(off=("NodePreferAvoidPods", "*")), "filter": on(off=("EBSLimits",))}}]
    },
}


@pytest.mark.parametrize("fields", QUIET.values(), ids=QUIET.keys())
def test_what_changes_nothing_is_dropped_quietly(fields):
    messages = warnings(a_file("v1beta1", **fields)).values()
    assert [message for message in messages if "NodePreferAvoidPods" not in message and "weight 1" not in message] == []


def test_disabled_preemption_is_disabled_in_every_profile():
    text = a_file("v1beta1", disablePreemption=True, profiles=[{"schedulerName": "a"}, {"schedulerName": "b"}])
    for found in load(text).configuration.profiles:
        assert "DefaultPreemption" not in names(found, Point.POST_FILTER)


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def node_label(**args: Any) -> NodeAffinityArgs:
    added = {"NodeAffinity": {"addedAffinity": args.pop("added")}} if "added" in args else {}
    text = a_profile_file("v1beta1", {"filter": on("NodeLabel")}, {"NodeLabel": args, **added})
    found = profile(text).args["NodeAffinity"]
    assert isinstance(found, NodeAffinityArgs)
    assert "becomes NodeAffinity's addedAffinity" in str(warnings(text))
    return found


def required_of(args: NodeAffinityArgs) -> list[list[tuple[str, str]]]:
    assert args.added_affinity is not None
    assert args.added_affinity.required is not None
    return [
        [(each.key, each.operator) for each in term.match_expressions]
        for term in args.added_affinity.required.node_selector_terms
    ]


def test_node_label_becomes_added_affinity():
    found = node_label(presentLabels=["zone"], absentLabels=["retired"])
    assert required_of(found) == [[("zone", "Exists"), ("retired", "DoesNotExist")]]


def test_node_label_is_required_beside_every_alternative_that_is_there():
    terms = [{"matchExpressions": [{"key": key, "operator": "Exists"}]} for key in "ab"]
    found = node_label(presentLabels=["zone"], added={REQUIRED: {"nodeSelectorTerms": terms}})
    assert required_of(found) == [[("a", "Exists"), ("zone", "Exists")], [("b", "Exists"), ("zone", "Exists")]]


def test_constraints_without_type_meant_a_list_in_v1beta1_only():
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
    args = {"PodTopologySpread": {"defaultConstraints": [constraint]}}
    assert profile(a_profile_file("v1beta1", None, args)).args["PodTopologySpread"].defaulting_type == "List"  # type: ignore[attr-defined]
    assert list(mistakes(a_profile_file("v1beta2", None, args))) == ["profiles[0].pluginConfig[0].args.defaultingType"]


def test_an_old_version_inside_arguments_is_rewritten_where_the_plugin_is_known():
    old = {"apiVersion": "kubescheduler.config.k8s.io/v1beta2", "kind": "InterPodAffinityArgs"}
    text = a_profile_file("v1beta2", None, {"InterPodAffinity": old, "Elsewhere": {"apiVersion": old["apiVersion"]}})
    configs = read_tree(convert(text, source="f", registry=EVERYTHING).text, "f").plain()["profiles"][0]["pluginConfig"]
    assert [each["args"]["apiVersion"] for each in configs] == ["kubescheduler.config.k8s.io/v1", old["apiVersion"]]


def test_a_file_in_v1_is_left_as_it_is():
    text = "# mine\n" + a_file()
    assert convert(text, source="f", registry=EVERYTHING).text == text


def test_a_converted_file_needs_no_further_conversion():
    converted = convert(SAMPLE, source="f", registry=EVERYTHING)
    assert converted.text.startswith("apiVersion: kubescheduler.config.k8s.io/v1\n")
    assert [warning for warning in converted.warnings if "weight 1" in warning.message]
    assert load(converted.text).version == "v1"


ANY_PLUGIN = st.sampled_from([*DEFAULTS, "ScoreByLabel", "sample2", LEAST, MOST, "NodeLabel", "EBSLimits", "*"])
ENTRIES = st.lists(
    st.builds(lambda name, weight: {"name": name, "weight": weight}, ANY_PLUGIN, st.integers(0, 9)), max_size=3
)
SETS = st.fixed_dictionaries({}, optional={"enabled": ENTRIES, "disabled": ENTRIES})
PLUGINS = st.dictionaries(st.sampled_from([point.config_name for point in Point] + ["unreserve"]), SETS, max_size=4)
CONFIGS = st.dictionaries(
    st.sampled_from(["NodeResourcesFit", LEAST, MOST, "NodeLabel", "PodTopologySpread", "ScoreByLabel"]),
    st.sampled_from([{}, {"resources": [{"name": "cpu", "weight": 2}]}, {"presentLabels": ["a"]}]),
    max_size=2,
)


@given(st.sampled_from(["v1beta1", "v1beta2", "v1beta3"]), PLUGINS, CONFIGS)
def test_a_converted_file_means_what_the_old_one_means(version, plugins, args):
    text = a_profile_file(version, plugins, args)
    try:
        old = load(text)
    except OperatorMistake:
        return
    converted = convert(text, source="f", registry=EVERYTHING)
    assert load(converted.text).configuration == old.configuration
