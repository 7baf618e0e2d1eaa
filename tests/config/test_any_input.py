"""Whatever is in the file, loading it ends in a configuration or in an operator's mistake."""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.config.files import load

from mooring.base.documents import written
from mooring.base.errors import OperatorMistake

KEYS = st.sampled_from(
    [
        "apiVersion",
        "kind",
        "profiles",
        "plugins",
        "pluginConfig",
        "schedulerName",
        "score",
        "filter",
        "multiPoint",
        "queueSort",
        "unreserve",
        "enabled",
        "disabled",
        "name",
        "weight",
        "args",
        "extenders",
        "managedResources",
        "tlsConfig",
        "httpTimeout",
        "weight",
        "bindVerb",
        "prioritizeVerb",
        "leaderElection",
        "leaderElect",
        "leaseDuration",
        "resourceLock",
        "clientConnection",
        "qps",
        "burst",
        "parallelism",
        "disablePreemption",
        "percentageOfNodesToScore",
        "podMaxBackoffSeconds",
        "healthzBindAddress",
        "addedAffinity",
        "resources",
        "presentLabels",
        "scoringStrategy",
        "shape",
        "defaultConstraints",
        "labelKey",
        "filterTimeout",
    ]
)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-5, 200)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(
        [
            "*",
            "NodeResourcesFit",
            "NodeLabel",
            "NodeAffinity",
            "PodTopologySpread",
            "NodeResourcesLeastAllocated",
            "ScoreByLabel",
            "sample2",
            "EBSLimits",
            "SelectorSpread",
            "DynamicResources",
            "endpoints",
            "leases",
            "15s",
            "List",
            "v1",
        ]
    )
    | st.text(max_size=5)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=20
)
VERSIONS = st.sampled_from(["v1", "v1beta3", "v1beta2", "v1beta1", "v2"])

ENTRIES = st.lists(st.fixed_dictionaries({}, optional={"name": SCALARS, "weight": SCALARS}) | SCALARS, max_size=3)
POINTS = st.dictionaries(KEYS, st.dictionaries(st.sampled_from(["enabled", "disabled"]), ENTRIES) | SCALARS, max_size=4)
CONFIGS = st.lists(st.fixed_dictionaries({}, optional={"name": SCALARS, "args": VALUES}) | SCALARS, max_size=3)
PROFILES = st.lists(
    st.fixed_dictionaries({}, optional={"schedulerName": SCALARS, "plugins": POINTS | SCALARS, "pluginConfig": CONFIGS})
    | SCALARS,
    max_size=3,
)


def attempt(text: str) -> None:
    with contextlib.suppress(OperatorMistake):
        load(text)


@given(st.text(max_size=200))
def test_any_text(text: str) -> None:
    attempt(text)


@given(st.text(alphabet="{}[]&*!|>-:#\"' \nab0<.,", max_size=60))
def test_any_punctuation(text: str) -> None:
    attempt(text)


@given(VERSIONS, st.dictionaries(KEYS, VALUES, max_size=6))
def test_any_fields(version: str, fields: dict[str, Any]) -> None:
    header = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"}
    attempt(written({**fields, **header}))


@given(VERSIONS, PROFILES)
def test_any_profiles(version: str, profiles: list[Any]) -> None:
    header = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "KubeSchedulerConfiguration"}
    attempt(written({**header, "profiles": profiles}))
