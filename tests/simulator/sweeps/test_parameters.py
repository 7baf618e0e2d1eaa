"""Which runs a grid or samples have, and what identifies them."""

import numpy as np
import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator import Cluster, Labelled, profile
from mooring.simulator.sweeps.parameters import labels_of, runs_of


def labels(parameters, common=None):
    return [run.labels for run in runs_of(parameters, common or {})]


def test_a_grid_has_every_combination_and_its_last_parameter_changes_fastest():
    assert labels({"policy": ["a", "b"], "seed": range(2)}) == [
        {"policy": "a", "seed": 0},
        {"policy": "a", "seed": 1},
        {"policy": "b", "seed": 0},
        {"policy": "b", "seed": 1},
    ]


def test_keys_of_a_mapping_are_labels_of_its_values():
    packing = profile(disable=["ImageLocality"])
    runs = runs_of({"configuration": {"default": None, "packing": packing}}, {})
    assert [run.labels for run in runs] == [{"configuration": "default"}, {"configuration": "packing"}]
    assert [run.values["configuration"] for run in runs] == [None, packing]


def test_an_object_alone_is_in_every_run_and_no_column():
    cluster, packing = Cluster([]), profile()
    runs = runs_of({"cluster": cluster, "configuration": packing, "seed": [1, 2]}, {"workload": ()})
    assert [run.labels for run in runs] == [{"seed": 1}, {"seed": 2}]
    assert all(run.values["cluster"] is cluster and run.values["configuration"] is packing for run in runs)
    assert all(run.values["workload"] == () for run in runs)


def test_a_number_alone_is_a_column():
    assert labels({"seed": 7, "weight": np.array([0.5, 1.0])}) == [
        {"seed": 7, "weight": 0.5},
        {"seed": 7, "weight": 1.0},
    ]


def test_samples_are_runs_in_their_order():
    samples = [{"weight": np.float64(0.5)}, {"weight": 2, "profile": Labelled("mine", profile())}]
    assert labels(samples) == [{"weight": 0.5}, {"weight": 2, "profile": "mine"}]


def test_a_key_does_not_depend_on_the_order_of_parameters():
    [one] = runs_of([{"a": 1, "b": "x"}], {})
    [other] = runs_of([{"b": "x", "a": 1}], {})
    assert one.key == other.key
    assert labels_of(one.key) == {"a": 1, "b": "x"}


MISTAKES = {
    "a value without a label": ({"cluster": [Cluster([])]}, "cluster\n.*a Cluster has no label"),
    "a value whose type begins with a vowel": ({"cluster": [object()]}, "cluster\n.*an object has no label"),
    "a sample that has one": ([{"seed": 1}, {"cluster": Cluster([])}], r"samples\[1\].cluster\n.*has no label"),
    "a label that is none": ({"x": [Labelled((1,), 2)]}, "a label must be a text or a number, got tuple"),  # type: ignore[arg-type]
    "a parameter without values": ({"seed": []}, "seed\n.*has no values"),
    "no samples": ([], "samples\n.*there are none"),
    "a sample that is no mapping": ([3], r"samples\[0\]\n.*must be a mapping"),
    "a run twice": ([{"seed": 1}, {"seed": 2}, {"seed": 1}], "seed=1\n.*there are 2 runs"),
}


@pytest.mark.parametrize(("parameters", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_named(parameters, message):
    with pytest.raises(OperatorMistake, match=message):
        runs_of(parameters, {})
