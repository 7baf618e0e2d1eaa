"""Bodies of requests, in the formats that clients send."""

from __future__ import annotations

import pytest

from mooring.apiserver.negotiation import parse_body
from mooring.apiserver.status import StatusError


def test_a_yaml_body_means_what_it_means_to_kubernetes():
    body = b"metadata: {creationTimestamp: 2024-01-01T00:00:00Z, labels: {1: y}}\nspec: {replicas: 1e1}\n"
    assert parse_body(body, "application/yaml; charset=utf-8") == {
        "metadata": {"creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"1": True}},
        "spec": {"replicas": 10},
    }


@pytest.mark.parametrize("body", [b"a: [", b"a: &a [*a]", b"\xff\xfe\xff", b"[" * 5000])
def test_a_body_that_is_no_yaml_is_refused_with_the_reason(body):
    with pytest.raises(StatusError, match="error converting YAML to JSON"):
        parse_body(body, "application/yaml")
