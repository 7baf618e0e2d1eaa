"""ScoreByLabel: numbers in a label become scores; what is no number counts 0 and is logged once."""

from __future__ import annotations

import pytest
from tests.plugins.verdicts import normalized

from mooring.plugins.examples.score_by_label import ScoreByLabel
from mooring.testing import Services, a_cluster, a_cycle, a_node, a_plugin, a_pod

KEY = "score-by-label"

CASES = {
    "the number in the label": ("10", 10),
    "zero": ("0", 0),
    "no label counts 0": (None, 0),
    "text counts 0": ("high", 0),
    "underscores are text": ("1_000", 0),
    "a fraction is text": ("1.5", 0),
    "a negative number counts 0": ("-3", 0),
}


@pytest.mark.parametrize(("label", "expected"), CASES.values(), ids=CASES.keys())
def test_the_score_is_the_number_in_the_label(label, expected):
    node = a_node(labels={} if label is None else {KEY: label})
    pod = a_pod()
    assert a_plugin(ScoreByLabel).score(pod, node, a_cycle(pod)) == expected


def a_labelled_cluster(services: Services, **labels: str):
    nodes = [a_node(name, labels={KEY: value}) for name, value in labels.items()]
    return a_cluster(*nodes, plugins=[a_plugin(ScoreByLabel, services)])


def test_the_highest_becomes_100_and_the_others_in_proportion():
    decision = a_labelled_cluster(Services(), low="1", middle="5", high="10").decide(a_pod())
    assert decision.node == "high"
    assert normalized(decision, "ScoreByLabel") == {"low": 10, "middle": 50, "high": 100}


def test_numbers_beyond_64_bits_do_no_harm():
    decision = a_labelled_cluster(Services(), huge="9" * 30, small="1").decide(a_pod())
    assert decision.node == "huge"


def test_the_arguments_the_labels_and_the_final_scores_are_logged():
    services = Services()
    a_labelled_cluster(services, one="1", ten="10").decide(a_pod())
    assert services.log.messages == [
        "[ScoreByLabelArgs] args received. LabelKey: score-by-label",
        "[ScoreByLabel] Label score for node one is score-by-label = 1",
        "[ScoreByLabel] Label score for node ten is score-by-label = 10",
        "[ScoreByLabel] Nodes final score: [{one 10} {ten 100}]",
    ]


def test_below_verbosity_six_only_the_arguments_are_logged():
    services = Services(verbosity=5)
    a_labelled_cluster(services, one="1", ten="10").decide(a_pod())
    assert len(services.log.lines) == 1


def test_text_is_logged_once_for_each_node_and_value():
    services = Services(verbosity=0)
    plugin = a_plugin(ScoreByLabel, services)
    for text in ("high", "high", "low", "high"):
        plugin.score(pod := a_pod(), a_node(labels={KEY: text}), a_cycle(pod))
    warnings = [values["value"] for severity, _, values in services.log.lines if severity == "W"]
    assert warnings == ["high", "low"]


def test_another_label_can_be_chosen():
    plugin = a_plugin(ScoreByLabel, label_key="rank")
    pod = a_pod()
    assert plugin.score(pod, a_node(labels={"rank": "7", KEY: "1"}), a_cycle(pod)) == 7
