"""ResourceClaims, their templates and slices: defaulting and validation."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.apiserver.status import StatusError
from mooring.base.clock import ManualClock, timestamp

GROUP = "resource.k8s.io/v1"
Document = dict[str, Any]


def a_request(**fields: Any) -> Document:
    return {"name": "r", **fields}


def claimed(*requests: Document) -> Document:
    return {"devices": {"requests": list(requests)}}


def create(store: Any, kind: str, spec: Document) -> Any:
    metadata: Document = {"name": "it"}
    if kind.startswith("ResourceClaim"):
        metadata["namespace"] = "default"
    return store.create({"apiVersion": GROUP, "kind": kind, "metadata": metadata, "spec": spec})


def one_alternative(request: Document) -> Document:
    request_spec = request["exactly"] if "exactly" in request else request["firstAvailable"][0]
    assert isinstance(request_spec, dict)
    return request_spec


DEFAULTS: dict[str, tuple[Document, Document]] = {
    "the short form requests one device": (
        {},
        {"allocationMode": "ExactCount", "count": 1},
    ),
    "empty values are absent ones": (
        {"allocationMode": "", "count": 0},
        {"allocationMode": "ExactCount", "count": 1},
    ),
    "a count alone is an exact one": (
        {"count": 3},
        {"allocationMode": "ExactCount", "count": 3},
    ),
    "all devices have no count": (
        {"allocationMode": "All"},
        {"allocationMode": "All"},
    ),
    "a toleration without operator compares values": (
        {"tolerations": [{"key": "k", "value": "v"}, {"operator": "Exists"}]},
        {
            "allocationMode": "ExactCount",
            "count": 1,
            "tolerations": [{"key": "k", "value": "v", "operator": "Equal"}, {"operator": "Exists"}],
        },
    ),
}


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
@pytest.mark.parametrize("form", ["exactly", "firstAvailable"])
@pytest.mark.parametrize(("given", "stored"), DEFAULTS.values(), ids=DEFAULTS.keys())
def test_missing_fields_of_a_request_are_defaulted(store: Any, kind: str, form: str, given: Document, stored: Document):
    request_spec = {"deviceClassName": "gpu", **given}
    request = (
        a_request(exactly=request_spec)
        if form == "exactly"
        else a_request(firstAvailable=[{"name": "s", **request_spec}])
    )
    spec = claimed(request)
    made = create(store, kind, spec if kind == "ResourceClaim" else {"spec": spec})
    spec = made["spec"] if kind == "ResourceClaim" else made["spec"]["spec"]
    found = one_alternative(spec["devices"]["requests"][0])
    assert {name: value for name, value in found.items() if name not in ("name", "deviceClassName")} == stored


EXACTLY = "spec.devices.requests[0].exactly"
REFUSALS: dict[str, tuple[Document, str]] = {
    "an unknown mode": (
        a_request(exactly={"deviceClassName": "gpu", "allocationMode": "Some"}),
        f'{EXACTLY}.allocationMode: Unsupported value: "Some": supported values: "All", "ExactCount"',
    ),
    "a negative count": (
        a_request(exactly={"deviceClassName": "gpu", "count": -1}),
        f"{EXACTLY}.count: Invalid value: -1: must be greater than zero",
    ),
    "a count beside all": (
        a_request(exactly={"deviceClassName": "gpu", "allocationMode": "All", "count": 2}),
        f"{EXACTLY}.count: Invalid value: 2: must not be specified when allocationMode is 'All'",
    ),
    "an unknown operator": (
        a_request(exactly={"deviceClassName": "gpu", "tolerations": [{"operator": "Like"}]}),
        f'{EXACTLY}.tolerations[0].operator: Unsupported value: "Like": supported values: "Equal", "Exists"',
    ),
    "no class": (
        a_request(exactly={"deviceClassName": ""}),
        f"{EXACTLY}.deviceClassName: Required value",
    ),
    "an alternative without class": (
        a_request(firstAvailable=[{"name": "s", "deviceClassName": ""}]),
        "spec.devices.requests[0].firstAvailable[0].deviceClassName: Required value",
    ),
    "neither form": (
        a_request(),
        "spec.devices.requests[0]: Required value: exactly one of `exactly` or `firstAvailable` is required",
    ),
    "both forms": (
        a_request(exactly={"deviceClassName": "gpu"}, firstAvailable=[{"name": "s", "deviceClassName": "gpu"}]),
        "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set",
    ),
}


@pytest.mark.parametrize(("request_", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_an_invalid_request_is_rejected(store: Any, request_: Document, message: str):
    with pytest.raises(StatusError) as refused:
        create(store, "ResourceClaim", claimed(request_))
    assert refused.value.code == 422
    assert message in refused.value.message


def test_a_taint_of_a_device_is_dated(store: Any, clock: ManualClock):
    dated = {"key": "k", "effect": "NoExecute", "timeAdded": "2020-01-01T00:00:00Z"}
    taints = [{"key": "k", "effect": "NoSchedule"}, dated]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": [{"name": "g", "taints": taints}]}
    [device] = create(store, "ResourceSlice", spec)["spec"]["devices"]
    assert device["taints"] == [
        {"key": "k", "effect": "NoSchedule", "timeAdded": timestamp(clock.now())},
        dated,
    ]
