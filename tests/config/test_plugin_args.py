"""Plugins' arguments: defaults, names on the wire, every mistake with its path."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.config.default_plugins import SCORE, a_plugin, a_registry
from tests.config.files import V1, a_file, a_profile_file, load, mistakes, profile, warnings

from mooring.framework import Args, FeatureGates, Meta, Point
from mooring.plugins.default.node_resources_fit import NodeResourcesFitArgs


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Weighted(msgspec.Struct, rename="camel", frozen=True):
    resource_name: str
    weight: Annotated[int, Meta(gt=0, lt=100)] = 1


class WideArgs(Args):
    address: str
    share: Annotated[float, Meta(ge=0, le=1)] = 0.5
    count: Annotated[int, Meta(ge=1)] = 3
    even: Annotated[int, Meta(multiple_of=2)] = 2
    is_on: bool = False
    period: timedelta = timedelta(seconds=15)
    mode: Literal["Fast", "Careful"] = "Fast"
    colour: Colour = Colour.RED
    labels: dict[str, str] = {}
    resources: Annotated[tuple[Weighted, ...], Meta(max_length=2)] = ()
    best: Weighted | None = None
    either: int | str | None = None
    name: Annotated[str, Meta(min_length=1, max_length=5, pattern="^[a-z]*$")] = "x"
    anything: Any = None

    def mistakes(self) -> Iterable[tuple[str, str]]:
        if self.mode == "Careful" and self.count < 5:
            yield "count", "must be at least 5 with mode Careful"
        for index, resource in enumerate(self.resources):
            if resource.resource_name == "pods":
                yield f"resources[{index}].resourceName", "pods cannot be weighed"


REGISTRY = a_registry(a_plugin("Wide", [SCORE], WideArgs), a_plugin("Plain", [SCORE]))
ON = {"score": {"enabled": [{"name": "Wide"}, {"name": "Plain"}]}}
AT = "profiles[0].pluginConfig[0].args"


def a_wide_file(**args: Any) -> str:
    return a_profile_file(plugins=ON, args={"Wide": args})


def wide(**args: Any) -> WideArgs:
    found = profile(a_wide_file(**{"address": "a", **args}), REGISTRY).args["Wide"]
    assert isinstance(found, WideArgs)
    return found


def test_what_is_not_given_has_its_default():
    assert wide() == WideArgs(address="a")


def test_names_are_camel_case_and_values_have_their_types():
    assert wide(
        share=1,
        isOn=True,
        period="1m30s",
        colour="blue",
        labels={"a": "b"},
        resources=[{"resourceName": "cpu", "weight": 5}],
        best={"resourceName": "memory"},
        either="word",
        anything={"deep": [1, None]},
        count=None,
    ) == WideArgs(
        address="a",
        share=1.0,
        is_on=True,
        period=timedelta(seconds=90),
        colour=Colour.BLUE,
        labels={"a": "b"},
        resources=(Weighted("cpu", 5),),
        best=Weighted("memory"),
        either="word",
        anything={"deep": [1, None]},
    )


def test_a_whole_fraction_is_a_whole_number():
    text = a_wide_file(address="a", count="COUNT").replace("COUNT", "1e1")
    assert profile(text, REGISTRY).args["Wide"].count == 10  # type: ignore[attr-defined]


def test_a_key_that_yaml_reads_as_a_boolean_is_explained():
    text = a_wide_file(address="a", KEY=5).replace('"KEY"', "n").replace("KEY", "n")
    message = mistakes(text, REGISTRY)[f"{AT}.false"]
    assert message.startswith(
        'unknown field "false". YAML reads the keys n, no, off without quotes as false: quote the'
    )


def test_a_text_that_yaml_reads_as_a_boolean_is_explained():
    message = mistakes(a_wide_file(address=True), REGISTRY)[f"{AT}.address"]
    assert (
        message == "must be a string, got the boolean true, as YAML reads y, yes, on and true without quotes; quote it"
    )


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "an unknown name": ({"adress": "b"}, "adress", 'unknown field "adress". Did you mean "address"?'),
    "the name of the Python field": ({"is_on": True}, "is_on", 'Did you mean "isOn"?'),
    "text for a number": ({"count": "5"}, "count", 'must be a whole number, got "5"'),
    "a fraction for a whole number": ({"count": 1.5}, "count", "must be a whole number, got 1.5"),
    "true for a number": ({"share": True}, "share", "must be a number, got true"),
    "too low": ({"count": 0}, "count", "must be at least 1, got 0"),
    "out of range": ({"share": 1.5}, "share", "must be between 0 and 1, got 1.5"),
    "odd": ({"even": 3}, "even", "must be a multiple of 2, got 3"),
    "a number for true or false": ({"isOn": 1}, "isOn", "must be true or false, got 1"),
    "a number for a duration": ({"period": 15}, "period", 'must be a duration such as "15s"'),
    "a word that is no duration": ({"period": "soon"}, "period", 'must be a duration such as "15s"'),
    "a word that is no choice": (
        {"mode": "fast"},
        "mode",
        'must be one of Careful, Fast; got "fast". Did you mean "Fast"?',
    ),
    "a list for a choice": ({"mode": []}, "mode", "must be one of Careful, Fast; got a list"),
    "no member": ({"colour": "rde"}, "colour", 'Did you mean "red"?'),
    "a number in a mapping of text": ({"labels": {"a": 1}}, "labels.a", "must be a string, got 1"),
    "a list for a mapping": ({"labels": []}, "labels", "must be a mapping, got a list"),
    "a mapping for a list": ({"resources": {}}, "resources", "must be a list, got a mapping"),
    "too many": ({"resources": [{"resourceName": "a"}] * 3}, "resources", "must have at most 2 item(s), got 3"),
    "a range inside a list": (
        {"resources": [{"resourceName": "a"}, {"resourceName": "b", "weight": 100}]},
        "resources[1].weight",
        "must be greater than 0 and less than 100, got 100",
    ),
    "an unknown field inside": ({"best": {"resourceName": "a", "wait": 1}}, "best.wait", 'Did you mean "weight"?'),
    "a required field inside": ({"best": {}}, "best.resourceName", "Required value"),
    "a word for a struct": ({"best": "cpu"}, "best", "must be a mapping"),
    "neither of two types": ({"either": 1.5}, "either", "Expected `int | str | null`, got `float`"),
    "an empty text": ({"name": ""}, "name", "must not be empty"),
    "a long text": ({"name": "abcdef"}, "name", "must have at most 5 letters"),
    "a text that does not match": ({"name": "A"}, "name", "must match ^[a-z]*$"),
    "across fields": ({"mode": "Careful"}, "count", "must be at least 5 with mode Careful"),
    "across fields, inside": (
        {"resources": [{"resourceName": "pods"}]},
        "resources[0].resourceName",
        "pods cannot be weighed",
    ),
    "another kind": ({"kind": "OtherArgs"}, "kind", 'has to match plugin args: must be "WideArgs"'),
    "another group": ({"apiVersion": "v1"}, "apiVersion", f'must be "{V1}"'),
    "a list as a group": ({"apiVersion": ["v1"]}, "apiVersion", f'must be "{V1}"'),
}


@pytest.mark.parametrize(("args", "path", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_mistake_in_arguments_names_its_field(args, path, message):
    found = mistakes(a_wide_file(**{"address": "a", **args}), REGISTRY)
    assert list(found) == [f"{AT}.{path}"]
    assert message in found[f"{AT}.{path}"]


def test_all_mistakes_in_arguments_come_at_once():
    found = mistakes(a_wide_file(count=0, share="x", mode="?"), REGISTRY)
    assert set(found) == {f"{AT}.{name}" for name in ("address", "count", "share", "mode")}


def test_a_missing_required_argument_is_reported():
    found = mistakes(a_profile_file(plugins=ON), REGISTRY)
    assert list(found) == ["profiles[0].pluginConfig[Wide].args.address"]


def test_arguments_may_carry_their_own_kind():
    assert wide(apiVersion=V1, kind="WideArgs") == wide()


def test_arguments_of_a_plugin_that_is_not_in_use_are_checked_all_the_same():
    found = mistakes(a_profile_file(args={"Wide": {"address": 5}}), REGISTRY)
    assert list(found) == [f"{AT}.address"]


def test_only_plugins_in_use_have_arguments():
    assert "Wide" not in profile(a_profile_file(args={"Wide": {"address": "a"}}), REGISTRY).args


def test_arguments_of_an_unknown_plugin_warn():
    found = warnings(a_profile_file(args={"Wild": {"a": 1}}), REGISTRY)
    assert 'Did you mean "Wide"?' in found["profiles[0].pluginConfig[0].name"]


def test_arguments_of_a_plugin_that_takes_none_warn():
    assert "takes no arguments" in warnings(a_profile_file(args={"Plain": {"a": 1}}), REGISTRY)[AT]
    assert warnings(a_profile_file(args={"Plain": {}}), REGISTRY) == {}


CONFIGS: dict[str, tuple[Any, str, str]] = {
    "no name": ([{"args": {}}], "[0].name", "Required value"),
    "a name that is a number": ([{"name": 5}], "[0].name", "must be a string"),
    "a name given twice": ([{"name": "Plain"}, {"name": "Plain"}], "[1].name", "repeated config for plugin Plain"),
    "arguments that are a list": ([{"name": "Wide", "args": []}], "[0].args", "must be a mapping, got a list"),
    "an unknown field": ([{"name": "Plain", "arg": {}}], "[0].arg", 'Did you mean "args"?'),
    "a refused plugin": ([{"name": "EBSLimits"}], "[0].name", "was invalid in version"),
    "a plugin for pod groups": ([{"name": "GangScheduling"}], "[0].name", "pod groups"),
    "a mapping": ({}, "", "must be a list"),
}


@pytest.mark.parametrize(("config", "path", "message"), CONFIGS.values(), ids=CONFIGS.keys())
def test_plugin_config_that_cannot_be_read(config, path, message):
    found = mistakes(a_file(profiles=[{"pluginConfig": config}]), REGISTRY)
    assert list(found) == [f"profiles[0].pluginConfig{path}"]
    assert message in found[f"profiles[0].pluginConfig{path}"]


def test_a_default_that_is_not_there_yet_takes_no_arguments():
    found = mistakes(a_profile_file(args={"VolumeBinding": {}}), a_registry(without=["VolumeBinding"]))
    assert "does not have yet" in found["profiles[0].pluginConfig[0].name"]


def test_a_field_whose_gate_is_off_is_forbidden():
    text = a_profile_file(args={"VolumeBinding": {"shape": [{"utilization": 0, "score": 10}]}})
    assert "StorageCapacityScoring" in mistakes(text)[f"{AT}.shape"]
    load(text, gates=FeatureGates({"StorageCapacityScoring": True}))


UNSORTED = {"shape": [{"utilization": 50, "score": 1}, {"utilization": 10, "score": 2}]}


def test_arguments_of_a_resources_fit_that_is_not_used_are_only_warned_about():
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": UNSORTED}
    args = {"NodeResourcesFit": {"scoringStrategy": strategy}}
    at = f"{AT}.scoringStrategy.requestedToCapacityRatio.shape[1].utilization"
    assert "sorted in increasing order" in mistakes(a_profile_file(args=args))[at]
    unused = a_profile_file(plugins={"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}, args=args)
    assert "sorted in increasing order" in warnings(unused)[at]


def test_resources_that_an_extender_manages_alone_replace_the_ignored_ones():
    managed = [{"name": "example.com/gpu", "ignoredByScheduler": True}, {"name": "example.com/tpu"}]
    found = profile(
        a_file(
            extenders=[{"urlPrefix": "http://extender", "managedResources": managed}],
            profiles=[
                {"pluginConfig": [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/x"]}}]}
            ],
        )
    ).args["NodeResourcesFit"]
    assert isinstance(found, NodeResourcesFitArgs)
    assert found.ignored_resources == ["example.com/gpu"]


class FaultyArgs(Args):
    def mistakes(self) -> Iterable[tuple[str, str]]:
        raise RuntimeError("oops")


def test_a_check_that_raises_is_reported_as_such():
    registry = a_registry(a_plugin("Faulty", [Point.SCORE], FaultyArgs))
    found = mistakes(a_profile_file(args={"Faulty": {}}), registry)
    assert found == {AT: "FaultyArgs.mistakes raised RuntimeError: oops"}
