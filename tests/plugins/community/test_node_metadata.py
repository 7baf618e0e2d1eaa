"""NodeMetadata: numbers and times in labels and annotations of nodes."""

from __future__ import annotations

import pytest

from mooring.base.clock import timestamp
from mooring.base.errors import OperatorMistake
from mooring.plugins.community.node_metadata import UNREADABLE, NodeMetadata
from mooring.testing import Services, a_cluster, a_node, a_plugin, a_pod, scored_at_once, scored_one_by_one

KEY = "example.com/rank"


def node_metadata(source="Label", type="Number", strategy="Highest", services=None, **more):
    given = {"metadata_key": KEY, "metadata_source": source, "metadata_type": type, "scoring_strategy": strategy}
    return a_plugin(NodeMetadata, services, **(given | more))


def raw(plugin, text, source="Label"):
    metadata = {} if text is None else {KEY: text}
    node = a_node("node", labels=metadata) if source == "Label" else a_node("node", annotations=metadata)
    cluster = a_cluster(node)
    plain = scored_one_by_one(plugin, a_pod(), cluster)
    assert scored_at_once(plugin, a_pod(), cluster) == plain
    assert plain is not None
    return plain["node"]


NUMBERS = {
    "a whole number": ("7", 7),
    "a fraction is cut off": ("7.9", 7),
    "towards zero": ("-7.9", -7),
    "with an exponent": ("1.5e3", 1500),
    "no number": ("seven", UNREADABLE),
    "Python's own notation is none": ("1_000", UNREADABLE),
    "hexadecimal notation": ("0x10", UNREADABLE),
    "infinity": ("inf", UNREADABLE),
    "more than 64 bits": ("1e30", UNREADABLE),
    "empty": ("", UNREADABLE),
    "missing": (None, UNREADABLE),
}


@pytest.mark.parametrize(("text", "expected"), NUMBERS.values(), ids=NUMBERS.keys())
@pytest.mark.parametrize("source", ["Label", "Annotation"])
def test_numbers(text, expected, source):
    assert raw(node_metadata(source), text, source) == expected


def test_the_lowest_is_best_where_that_is_the_strategy():
    assert raw(node_metadata(strategy="Lowest"), "7") == -7


@pytest.mark.parametrize(("strategy", "expected"), [("Oldest", 90), ("Newest", -90)])
def test_times_count_by_their_age_in_whole_seconds(strategy, expected):
    services = Services()
    plugin = node_metadata("Annotation", "Timestamp", strategy, services)
    assert raw(plugin, timestamp(services.clock.now() - 90), "Annotation") == expected


def test_a_time_may_have_any_layout_of_go():
    plugin = node_metadata("Annotation", "Timestamp", "Oldest", timestamp_format="02 Jan 06 15:04 MST")
    assert raw(plugin, "14 Nov 23 22:13 UTC", "Annotation") == 1_700_000_000 - 1_699_999_980
    assert raw(plugin, "2023-11-14T22:13:00Z", "Annotation") == UNREADABLE


def normalized(**labels):
    nodes = [a_node(name, labels={} if text is None else {KEY: text}) for name, text in labels.items()]
    cluster = a_cluster(*nodes, plugins=[node_metadata()])
    columns = cluster.schedule(a_pod()).columns()
    assert columns is not None
    return dict(zip(columns.nodes, columns.normalized["NodeMetadata"].tolist(), strict=True))


def test_readable_values_lie_between_1_and_100_and_others_have_0():
    assert normalized(low="0", middle="5", high="10", none=None) == {"low": 1, "middle": 50, "high": 100, "none": 0}


def test_equal_values_have_1():
    assert normalized(one="3", other="3", none="x") == {"one": 1, "other": 1, "none": 0}


def test_without_any_value_all_have_0():
    assert normalized(one=None, other="x") == {"one": 0, "other": 0}


WRONG = {
    "no key": ({"metadata_key": ""}, "metadataKey cannot be empty"),
    "a wrong source": ({"metadata_source": "Spec"}, 'metadataSource must be either "Label" or "Annotation"'),
    "a wrong type": ({"metadata_type": "Text"}, 'metadataType must be either "Number" or "Timestamp"'),
    "a wrong strategy": ({"scoring_strategy": "Best"}, "scoringStrategy must be one of"),
    "a strategy of times for numbers": (
        {"scoring_strategy": "Oldest"},
        'scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"',
    ),
    "a strategy of numbers for times": (
        {"metadata_type": "Timestamp"},
        'scoringStrategy "Highest" and "Lowest" are only valid for metadataType "Number"',
    ),
    "a layout without a time": (
        {"metadata_type": "Timestamp", "scoring_strategy": "Newest", "timestamp_format": "yyyy"},
        "holds no part of Mon Jan 2",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_mistakes_are_reported_in_the_words_of_the_original(arguments, message):
    with pytest.raises(OperatorMistake) as mistake:
        node_metadata(**arguments)
    assert message in str(mistake.value)
