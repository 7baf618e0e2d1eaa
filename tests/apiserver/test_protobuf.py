"""Protobuf request bodies, as kubectl's typed commands send them."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.apiserver.conftest import Client

from mooring.apiserver.protobuf import CONTENT_TYPE, BadProtobuf, read_object


def field(number: int, value: bytes | str | int) -> bytes:
    """One field of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (2**64 - 1))
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(value: int) -> bytes:
    out = bytearray()
    while True:
        out.append(value & 0x7F | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def an_object(api_version: str, kind: str, message: bytes) -> bytes:
    return b"k8s\x00" + field(1, field(1, api_version) + field(2, kind)) + field(2, message)


METADATA = field(1, field(1, "web") + field(3, "") + field(7, 0) + field(11, field(1, "app") + field(2, "web")))


def test_a_deployment():
    container = field(1, "main") + field(2, "app:1") + field(14, "")
    resources = field(1, field(1, "cpu") + field(2, field(1, "500m")))
    template = field(1, b"") + field(2, field(2, container + field(8, resources)))
    rolling = field(2, field(1, field(1, 1) + field(2, 0) + field(3, "25%")) + field(2, field(1, 0) + field(2, 1)))
    spec = field(1, 0) + field(3, template) + field(4, rolling) + field(5, 0) + field(7, 0)
    deployment = read_object(an_object("apps/v1", "Deployment", METADATA + field(2, spec)))
    assert deployment == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {
            # An explicit zero: Go has a pointer here. `minReadySeconds` and `paused` are not.
            "replicas": 0,
            "template": {
                "spec": {"containers": [{"name": "main", "image": "app:1", "resources": {"limits": {"cpu": "500m"}}}]}
            },
            "strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}},
        },
    }


def test_inlined_structs_numbers_times_and_bytes():
    volume = field(1, "data") + field(2, field(2, field(1, "Memory")))
    pod = read_object(an_object("v1", "Pod", METADATA + field(2, field(1, volume) + field(25, 2**64 - 5))))
    assert pod["spec"] == {"volumes": [{"name": "data", "emptyDir": {"medium": "Memory"}}], "priority": -5}
    lease = read_object(
        an_object("coordination.k8s.io/v1", "Lease", field(2, field(4, field(1, 1_700_000_000) + field(2, 5000))))
    )
    assert lease["spec"] == {"renewTime": "2023-11-14T22:13:20.000005Z"}
    secret = read_object(an_object("v1", "Secret", field(2, field(1, "a") + field(2, b"\xff"))))
    assert secret["data"] == {"a": "/w=="}


async def test_a_protobuf_body_is_accepted_and_the_response_is_json(api: Client):
    body = an_object("v1", "ConfigMap", METADATA + field(2, field(1, "a") + field(2, "b")))
    response = await api.post("/api/v1/namespaces/default/configmaps", body, Content_Type=CONTENT_TYPE)
    assert (response.code, response.body["data"]) == (201, {"a": "b"})


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", an_object("v1", "Nothing", b""), an_object("v1", "Pod", b"\x0a\xff"), an_object("v1", "Pod", b"\x0f")],
)
async def test_what_is_no_object_is_a_bad_request(api: Client, body: bytes):
    response = await api.post("/api/v1/namespaces/default/configmaps", body or b"\x00", Content_Type=CONTENT_TYPE)
    assert response.code == 400


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(junk: bytes):
    with contextlib.suppress(BadProtobuf):
        read_object(an_object("v1", "Pod", junk))
