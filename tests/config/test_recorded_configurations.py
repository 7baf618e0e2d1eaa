"""What the real kube-scheduler v1.36.4 made of 400 configurations, and what we make of them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from tests.config.default_plugins import EVERYTHING

from mooring.base.errors import OperatorMistake
from mooring.config import Loaded, ProfileConfiguration, load_configuration
from mooring.config.as_v1 import args_as_json, as_v1
from mooring.framework import Point
from mooring_conformance.cases import RECORDED, read


@cache
def recorded() -> list[tuple[str, dict[str, Any]]]:
    cases = [json.loads(line) for line in read(RECORDED / "config.jsonl.xz")]
    return [(json.dumps(case["case"]["config"]), case["expect"]) for case in cases]


@cache
def judged() -> list[tuple[Loaded | OperatorMistake, dict[str, Any]]]:
    """What we make of each configuration, beside what kube-scheduler made of it."""
    return [(outcome(text), expect) for text, expect in recorded()]


def outcome(text: str) -> Loaded | OperatorMistake:
    try:
        return load_configuration(text, source="recorded", registry=EVERYTHING)
    except OperatorMistake as mistake:
        return mistake


def accepted() -> list[tuple[Loaded, dict[str, Any]]]:
    return [(found, expect) for found, expect in judged() if isinstance(found, Loaded)]


def names(loaded: Loaded, point: Point) -> list[str]:
    return [use.name for use in loaded.configuration.profiles[0].points[point]]


def test_what_kube_scheduler_accepts_is_accepted_and_what_it_refuses_is_refused():
    assert len(judged()) == 400
    assert [
        expect["name"] for found, expect in judged() if isinstance(found, OperatorMistake) != ("error" in expect)
    ] == []


KEY_WORDS = {
    "not in valid range [0, 100]": "between 0 and 100",  # checked by the type of the arguments, for every plugin
    'unknown field "profiles[0].noSuchField"': 'unknown field "noSuchField"',
}


def test_refusals_carry_the_key_words_of_kube_scheduler_and_its_path():
    refused = [(found, expect["error"]) for found, expect in judged() if isinstance(found, OperatorMistake)]
    assert len(refused) == 16
    for mistake, error in refused:
        reason = error.rpartition(": ")[2] if "Invalid value" in error else error.partition(": ")[2]
        assert next((ours for theirs, ours in KEY_WORDS.items() if theirs in error), reason) in str(mistake)
        if error.startswith("config: profiles"):
            assert error.split(": ")[1] in [problem.path for problem in mistake.problems]


def test_the_same_plugins_score_with_the_same_weights():
    compared = 0
    for loaded, expect in accepted():
        weights = {use.name: use.weight for use in loaded.configuration.profiles[0].points[Point.SCORE]}
        skipped = set(expect.get("scoreSkipped") or ())
        assert skipped <= set(names(loaded, Point.PRE_SCORE))
        for scores in (expect.get("scores") or {}).values():
            assert set(scores["scores"]) == set(weights) - skipped, expect["name"]
            for plugin, normalized in scores["normalized"].items():
                assert scores["scores"][plugin] == normalized * weights[plugin], expect["name"]
            compared += 1
    assert compared > 1_000


def test_only_plugins_that_filter_reject_nodes_and_only_those_with_pre_filter_skip_it():
    for loaded, expect in accepted():
        pre_filters = names(loaded, Point.PRE_FILTER)
        assert set(expect.get("preFilter", {}).get("skipped") or ()) <= set(pre_filters), expect["name"]
        rejecting = {rejected["plugin"] for rejected in (expect.get("nodes") or {}).values() if rejected}
        # Where pre_filter names the nodes, the others are rejected by no plugin.
        assert rejecting - {""} <= set(names(loaded, Point.FILTER)), expect["name"]


def test_a_warning_about_pre_score_is_given_where_scoring_failed():
    for loaded, expect in accepted():
        is_warned = any("preScore is off" in warning.message for warning in loaded.warnings)
        if len(expect.get("feasible") or ()) > 1:
            assert is_warned == (expect["result"] == "error"), expect["name"]


def shown(profile: ProfileConfiguration) -> dict[str, str]:
    return {name: args_as_json(args).decode() for name, args in profile.args.items()}


def test_arguments_that_are_shown_can_be_pasted_back_and_are_shown_alike():
    for loaded, _ in accepted():
        document = as_v1(loaded.configuration, with_credentials=True)
        profiles = loaded.configuration.profiles
        for profile, written in zip(profiles, document["profiles"], strict=True):
            args = shown(profile).items()
            written["pluginConfig"] = [{"name": name, "args": json.loads(text)} for name, text in args]
        again = load_configuration(json.dumps(document), source="pasted", registry=EVERYTHING).configuration
        assert [shown(profile) for profile in again.profiles] == [shown(profile) for profile in profiles]
