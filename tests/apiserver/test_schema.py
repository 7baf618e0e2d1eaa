"""Types of built-in kinds: canonical quantities, unknown fields, what a decoder refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.schema import WrongType, canonical_quantity, coerce
from mooring.objects.quantity import exact

CANONICAL = {
    "1e99999999": "1e99999999",
    "1E+99999": "1e99999",
    "10e1": "100",
    "1e21": "1e21",
    "1e-99999999": "1e-9",
    "9Ei": "9223372036854775807",
    "1": "1",
    "1000m": "1",
    "0.5": "500m",
    "1.5": "1500m",
    "1500m": "1500m",
    "1000": "1k",
    "1Ki": "1Ki",
    "1024Ki": "1Mi",
    "1.5Gi": "1536Mi",
    "0": "0",
    "0Mi": "0",
    "100u": "100u",
    "-500m": "-500m",
    "1e3": "1e3",
    "12E": "12E",
}


@pytest.mark.parametrize(("given_text", "expected"), CANONICAL.items())
def test_quantities_are_written_in_their_canonical_form(given_text: str, expected: str):
    assert canonical_quantity(given_text) == expected


@given(
    st.integers(0, 10**6),
    st.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]),
    st.sampled_from(["", "-"]),
)
def test_the_canonical_form_means_the_same_and_is_its_own(number: int, suffix: str, sign: str):
    text = f"{sign}{number}{suffix}"
    canonical = canonical_quantity(text)
    assert exact(canonical) == exact(text)
    assert canonical_quantity(canonical) == canonical


def test_nulls_and_empty_lists_are_left_out_and_empty_structs_kept():
    pod = {"metadata": {"creationTimestamp": None, "labels": {}}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}
    assert coerce(pod, "io.k8s.api.core.v1.Pod") == []
    assert pod == {"metadata": {}, "spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}


def test_unknown_fields_are_named_with_their_path():
    pod = {"spec": {"containers": [{"name": "a", "nmae": "b"}], "x": 1}, "y": {}}
    assert coerce(pod, "io.k8s.api.core.v1.Pod") == ["spec.containers[0].nmae", "spec.x", "y"]


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"replicas": 2**31}, "spec.replicas of type int32"),
        ({"replicas": 1.5}, "spec.replicas of type int32"),
        ({"replicas": True}, "json: cannot unmarshal bool into Go struct field spec.replicas"),
        ({"paused": "yes"}, "spec.paused of type bool"),
        ({"selector": []}, "spec.selector of type LabelSelector"),
        ({"strategy": {"rollingUpdate": {"maxSurge": []}}}, "maxSurge of type intstr.IntOrString"),
    ],
)
def test_wrong_types_are_refused(spec: dict[str, object], sentence: str):
    with pytest.raises(WrongType, match=sentence.replace("[", r"\[")):
        coerce({"spec": spec}, "io.k8s.api.apps.v1.Deployment")


@pytest.mark.parametrize("text", ["yesterday", "2023-13-14T22:13:20Z", "2023-11-14 22:13:20Z", "2023-11-14T22:13:20"])
def test_a_time_that_is_none_is_refused(text: str):
    with pytest.raises(WrongType, match=f'parsing time "{text}"'):
        coerce({"spec": {"renewTime": text}}, "io.k8s.api.coordination.v1.Lease")


@pytest.mark.parametrize(
    "text", ["2023-11-14T22:13:20Z", "2023-11-14T22:13:20.123456789Z", "2023-11-14T22:13:20+01:00"]
)
def test_a_time_may_have_a_fraction_and_a_zone(text: str):
    assert coerce({"spec": {"renewTime": text}}, "io.k8s.api.coordination.v1.Lease") == []
