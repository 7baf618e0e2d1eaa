"""Which plugins run where: merging with the defaults, multiPoint, order, weights."""

from __future__ import annotations

from typing import Any

import pytest
from tests.config.default_plugins import (
    DEFAULTS,
    FILTER,
    PRE_SCORE,
    SCORE,
    LabelArgs,
    a_plugin,
    a_registry,
)
from tests.config.files import a_file, a_profile_file, load, mistakes, names, profile, warnings, weights

from mooring.framework import Point


def on(*entries: str | tuple[str, int], off: tuple[str, ...] = ()) -> dict[str, Any]:
    """A plugin set: what is enabled (with a weight), and what is disabled."""
    enabled = [{"name": each} if isinstance(each, str) else {"name": each[0], "weight": each[1]} for each in entries]
    return {"enabled": enabled, "disabled": [{"name": name} for name in off]}


def test_the_default_profile_is_kube_schedulers():
    found = profile(a_file())
    assert {point.config_name: " ".join(names(found, point)) for point in found.points} == {
        "preEnqueue": "SchedulingGates DynamicResources DefaultPreemption",
        "queueSort": "PrioritySort",
        "preFilter": "NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions NodeVolumeLimits VolumeBinding "
        "VolumeZone PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
        "filter": "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit "
        "VolumeRestrictions NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity "
        "DynamicResources NodeDeclaredFeatures",
        "postFilter": "DynamicResources DefaultPreemption",
        "preScore": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "NodeResourcesBalancedAllocation",
        "score": "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
        "DynamicResources NodeResourcesBalancedAllocation ImageLocality",
        "reserve": "VolumeBinding DynamicResources",
        "permit": "",
        "preBind": "VolumeBinding DynamicResources",
        "bind": "DefaultBinder",
        "postBind": "",
    }
    assert weights(found) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "VolumeBinding": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "DynamicResources": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


A = a_plugin("A", [FILTER, SCORE])
B = a_plugin("B", [FILTER, PRE_SCORE, SCORE], score_needs_pre_score=False)
FEW = ("PrioritySort", "NodeName", "TaintToleration", "NodeAffinity", "ImageLocality", "DefaultBinder")
SMALL = a_registry(A, B, without=[name for name in DEFAULTS if name not in FEW])

ORDERS: dict[str, tuple[dict[str, Any], Point, list[str]]] = {
    "another plugin comes last": ({"filter": on("A")}, FILTER, ["NodeName", "TaintToleration", "NodeAffinity", "A"]),
    "a disabled default is left out": ({"filter": on(off=("NodeName",))}, FILTER, ["TaintToleration", "NodeAffinity"]),
    "a star leaves what is enabled, in its order": (
        {"filter": on("A", "NodeName", off=("*",))},
        FILTER,
        ["A", "NodeName"],
    ),
    "a star at one point leaves the others": (
        {"filter": on(off=("*",))},
        SCORE,
        ["TaintToleration", "NodeAffinity", "ImageLocality"],
    ),
    "what a point configures of the defaults comes first": (
        {"score": on("A", "ImageLocality", "TaintToleration")},
        SCORE,
        ["ImageLocality", "TaintToleration", "NodeAffinity", "A"],
    ),
    "a default given to multiPoint again stays in its place": (
        {"multiPoint": on("B", "NodeName", "A")},
        FILTER,
        ["NodeName", "TaintToleration", "NodeAffinity", "B", "A"],
    ),
    "a default disabled and enabled in multiPoint goes to the end": (
        {"multiPoint": on("A", "NodeName", off=("NodeName",))},
        FILTER,
        ["TaintToleration", "NodeAffinity", "A", "NodeName"],
    ),
    "multiPoint with a star is exactly its list": (
        {"multiPoint": on("B", "PrioritySort", "DefaultBinder", "A", off=("*",))},
        FILTER,
        ["B", "A"],
    ),
    "multiPoint skips a point that the plugin has not": (
        {"multiPoint": on("A")},
        PRE_SCORE,
        ["TaintToleration", "NodeAffinity"],
    ),
    "a point can disable what multiPoint enables": (
        {"multiPoint": on("A"), "filter": on(off=("A",))},
        FILTER,
        ["NodeName", "TaintToleration", "NodeAffinity"],
    ),
    "a point can disable and enable at once": (
        {"filter": on("NodeName", off=("NodeName",))},
        FILTER,
        ["TaintToleration", "NodeAffinity", "NodeName"],
    ),
}


@pytest.mark.parametrize(("plugins", "point", "order"), ORDERS.values(), ids=ORDERS.keys())
def test_the_order_at_a_point(plugins, point, order):
    assert names(profile(a_profile_file(plugins=plugins), SMALL), point) == order


WEIGHTS: dict[str, tuple[dict[str, Any], str, int]] = {
    "the weight of score counts": ({"score": on(("TaintToleration", 7))}, "TaintToleration", 7),
    "a weight of multiPoint counts where score has none": (
        {"multiPoint": on(("TaintToleration", 7))},
        "TaintToleration",
        7,
    ),
    "score counts before multiPoint": (
        {"multiPoint": on(("A", 7)), "score": on(("A", 5))},
        "A",
        5,
    ),
    "no weight is one": ({"score": on("TaintToleration")}, "TaintToleration", 1),
    "weight zero is one": ({"score": on(("TaintToleration", 0))}, "TaintToleration", 1),
}


@pytest.mark.parametrize(("plugins", "name", "weight"), WEIGHTS.values(), ids=WEIGHTS.keys())
def test_the_weight_of_a_score_plugin(plugins, name, weight):
    assert weights(profile(a_profile_file(plugins=plugins), SMALL))[name] == weight


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "twice at a point": (
        {"score": on("A", "A")},
        "score.enabled[1].name",
        'plugin "A" already registered as "ScorePlugin"',
    ),
    "twice in multiPoint": (
        {"multiPoint": on("B", "A", "B")},
        "multiPoint.enabled[2].name",
        'plugin "B" already registered as',
    ),
    "an unknown name": ({"filter": on("X")}, "filter.enabled[0].name", 'FilterPlugin "X" does not exist'),
    "a name nearly right": ({"filter": on("Nodename")}, "filter.enabled[0].name", 'Did you mean "NodeName"?'),
    "an unknown name in multiPoint": ({"multiPoint": on("X")}, "multiPoint.enabled[0].name", '"X" does not exist'),
    "a star enabled": ({"filter": on("*")}, "filter.enabled[0].name", '"*" can be disabled, not enabled'),
    "a plugin that has not the point": (
        {"filter": on("ImageLocality")},
        "filter.enabled[0].name",
        'plugin "ImageLocality" does not extend FilterPlugin plugin: it has score',
    ),
    "a default that is not there yet": (
        {"filter": on("VolumeZone")},
        "filter.enabled[0].name",
        "one of kube-scheduler's defaults that Mooring does not have yet",
    ),
    "a plugin of old versions": (
        {"score": on("NodeResourcesMostAllocated")},
        "score.enabled[0].name",
        "use NodeResourcesFit with scoringStrategy type MostAllocated",
    ),
    "a refused one": ({"filter": on("EBSLimits")}, "filter.enabled[0].name", "was invalid in version"),
    "a plugin for pod groups": (
        {"permit": on("GangScheduling")},
        "permit.enabled[0].name",
        "is about pod groups",
    ),
    "a point for pod groups": (
        {"placementScore": on("A")},
        "placementScore.enabled[0].name",
        "is about pod groups",
    ),
    "no queue sort": (
        {"queueSort": on(off=("*",))},
        "queueSort",
        'only one queue sort plugin required for profile with scheduler name "mine", but got 0',
    ),
    "no queue sort through multiPoint": (
        {"multiPoint": on("DefaultBinder", off=("*",))},
        "queueSort",
        "but got 0",
    ),
    "no binder": (
        {"bind": on(off=("DefaultBinder",))},
        "bind",
        'at least one bind plugin is needed for profile with scheduler name "mine"',
    ),
    "an unknown point": ({"filters": on("A")}, "filters", 'Did you mean "filter"?'),
    "an unknown field of a point": ({"filter": {"enable": []}}, "filter.enable", 'Did you mean "enabled"?'),
    "an entry without name": ({"filter": {"enabled": [{"weight": 1}]}}, "filter.enabled[0].name", "Required value"),
    "an entry that is a word": ({"filter": {"enabled": ["A"]}}, "filter.enabled[0]", "must be a mapping"),
    "a weight that is a word": (
        {"score": {"enabled": [{"name": "A", "weight": "1"}]}},
        "score.enabled[0].weight",
        "must be a whole number",
    ),
    "an unknown field of an entry": (
        {"score": {"enabled": [{"name": "A", "wieght": 1}]}},
        "score.enabled[0].wieght",
        'Did you mean "weight"?',
    ),
}


@pytest.mark.parametrize(("plugins", "path", "message"), WRONG.values(), ids=WRONG.keys())
def test_plugins_that_cannot_run_so(plugins, path, message):
    found = mistakes(a_profile_file(plugins=plugins), SMALL)
    assert list(found) == [f"profiles[0].plugins.{path}"]
    assert message in found[f"profiles[0].plugins.{path}"]


def test_two_queue_sorts_are_one_too_many():
    found = mistakes(a_profile_file(plugins={"queueSort": on("OtherSort")}))
    assert "but got 2 (PrioritySort, OtherSort)" in found["profiles[0].plugins.queueSort"]


def test_what_is_disabled_is_never_an_error():
    found = warnings(
        a_profile_file(plugins={"filter": on(off=("Nodename", "VolumeZone", "EBSLimits", "GangScheduling"))}), SMALL
    )
    assert list(found) == ["profiles[0].plugins.filter.disabled[0].name"]
    assert 'Did you mean "NodeName"?' in found["profiles[0].plugins.filter.disabled[0].name"]


def test_a_weight_below_zero_is_taken_but_warned_of():
    text = a_profile_file(plugins={"score": on(("ImageLocality", -1))})
    assert weights(profile(text))["ImageLocality"] == -1
    assert "prefers the nodes it scores lowest" in warnings(text)["profiles[0].plugins.score.enabled[0].name"]


def test_only_the_defaults_that_exist_take_part():
    assert profile(a_file(), SMALL).used_plugins == tuple(
        name for name in profile(a_file()).used_plugins if name in FEW
    )


def several(*profiles: dict[str, Any]) -> str:
    return a_file(profiles=[{"schedulerName": f"s{index}", **each} for index, each in enumerate(profiles)])


def test_two_profiles_may_configure_a_plugin_differently():
    def with_key(key: str) -> dict[str, Any]:
        return {
            "plugins": {"score": on("ScoreByLabel")},
            "pluginConfig": [{"name": "ScoreByLabel", "args": {"labelKey": key}}],
        }

    profiles = load(several(with_key("a"), with_key("b"))).configuration.profiles
    assert [each.args["ScoreByLabel"].label_key for each in profiles] == ["a", "b"]  # type: ignore[attr-defined]


PROFILES: dict[str, tuple[str, dict[str, str]]] = {
    "a name given twice": (
        a_file(profiles=[{"schedulerName": "a"}, {"schedulerName": "a"}]),
        {"profiles[1].schedulerName": 'Duplicate value: "profiles[0].schedulerName"'},
    ),
    "two without name": (
        a_file(profiles=[{}, {"schedulerName": "b"}]),
        {"profiles[0].schedulerName": "Required value"},
    ),
    "an empty name": (a_file(profiles=[{"schedulerName": ""}]), {"profiles[0].schedulerName": "Required value"}),
    "a number for a name": (a_file(profiles=[{"schedulerName": 5}]), {"profiles[0].schedulerName": "must be a string"}),
    "an unknown field": (
        a_file(profiles=[{"schedulerName": "a", "percentageOfNodeToScore": 5}]),
        {"profiles[0].percentageOfNodeToScore": 'Did you mean "percentageOfNodesToScore"?'},
    ),
    "a percentage out of range": (
        a_file(profiles=[{"percentageOfNodesToScore": 200}]),
        {"profiles[0].percentageOfNodesToScore": "not in valid range [0-100]"},
    ),
    "queue sorts written differently": (
        several({}, {"plugins": {"queueSort": on("PrioritySort", off=("*",))}}),
        {"profiles[1].plugins.queueSort": "must be the same for all profiles: enabled PrioritySort and disabled *"},
    ),
    "queue sorts that differ through multiPoint": (
        several({}, {"plugins": {"multiPoint": on("OtherSort", off=("PrioritySort",))}}),
        {"profiles[1].plugins.queueSort": 'different queue sort plugins for profile "s1": "OtherSort"'},
    ),
}


@pytest.mark.parametrize(("text", "found"), PROFILES.values(), ids=PROFILES.keys())
def test_profiles_that_do_not_go_together(text, found):
    actual = mistakes(text)
    assert list(actual) == list(found)
    assert all(message in actual[path] for path, message in found.items())


def test_queue_sort_arguments_must_be_alike():
    sort = a_plugin("ConfiguredSort", [Point.QUEUE_SORT], LabelArgs)
    plugins = {"queueSort": on("ConfiguredSort", off=("*",))}
    text = several(
        {"plugins": plugins},
        {"plugins": plugins, "pluginConfig": [{"name": "ConfiguredSort", "args": {"labelKey": "other"}}]},
    )
    found = mistakes(text, a_registry(sort))
    assert 'different queue sort plugin args for profile "s1"' in found["profiles[1].pluginConfig"]


def test_a_profile_may_override_the_percentage():
    found = profile(a_file(percentageOfNodesToScore=50, profiles=[{"percentageOfNodesToScore": 0}]))
    assert found.percentage_of_nodes_to_score == 0


def test_scores_that_need_a_pre_score_that_is_off_are_named():
    found = warnings(a_profile_file(plugins={"preScore": on("sample2", off=("*",))}))
    assert list(found) == ["profiles[0].plugins.preScore"]
    assert (
        "preScore is off for TaintToleration, PodTopologySpread, InterPodAffinity, whose"
        in (found["profiles[0].plugins.preScore"])
    )


def test_no_score_no_need_of_pre_score():
    plugins = {"preScore": on("sample2", off=("*",)), "score": on("NodeAffinity", off=("*",))}
    assert warnings(a_profile_file(plugins=plugins)) == {}


DISABLED_IN_VAIN: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "everywhere, and enabled at one point": (
        {"multiPoint": on(off=("A",)), "score": on(("A", 5))},
        {"profiles[0].plugins.multiPoint.disabled[0].name": "score.enabled wins"},
    ),
    "and enabled beside it": (
        {"multiPoint": on("A", off=("A",))},
        {"profiles[0].plugins.multiPoint.disabled[0].name": "multiPoint.enabled wins"},
    ),
    "at one point, and enabled there": (
        {"score": on("A", off=("A",))},
        {"profiles[0].plugins.score.disabled[0].name": "score.enabled wins"},
    ),
    "what is enabled everywhere can be disabled at a point": ({"multiPoint": on("A"), "score": on(off=("A",))}, {}),
    "and given another weight there": ({"multiPoint": on("A"), "score": on(("A", 5), off=("A",))}, {}),
    "a default is disabled everywhere and enabled at one point": (
        {"multiPoint": on(off=("NodeAffinity",)), "filter": on("NodeAffinity")},
        {},
    ),
    "all defaults, and some plugins enabled": (
        {"multiPoint": on("A", "PrioritySort", "DefaultBinder", off=("*",))},
        {},
    ),
}


@pytest.mark.parametrize(("plugins", "warned"), DISABLED_IN_VAIN.values(), ids=DISABLED_IN_VAIN.keys())
def test_a_plugin_that_is_disabled_in_vain_is_named(plugins, warned):
    found = {
        path: message
        for path, message in warnings(a_profile_file(plugins=plugins), SMALL).items()
        if "although it is disabled" in message
    }
    assert found.keys() == warned.keys()
    assert all(words in found[path] for path, words in warned.items())
