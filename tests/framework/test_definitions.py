"""A CustomResourceDefinition from a class: each type has its schema, and what has none is named."""

from __future__ import annotations

import datetime
import enum
import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec
import pytest
from tests.scheduler.conftest import CRDS

from mooring.apiserver import EmbeddedApiServer
from mooring.base.errors import ApiError, OperatorMistake
from mooring.client import ApiClient, Connection
from mooring.framework import CustomResource, Meta, ResourcePart
from mooring.framework.definitions import definition_of
from mooring.objects import Kind


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Anchor(ResourcePart):
    """Holds a boat."""

    weight_kg: Annotated[int, Meta(gt=0, description="How heavy it is.")]
    rope: str = "hemp"


class Everything(ResourcePart):
    boolean: bool = False
    whole: int = 0
    number: float = 0.0
    text: str = ""
    instant: datetime.datetime | None = None
    day: datetime.date | None = None
    raw: bytes = b""
    anything: Any = None
    texts: list[str] = []
    several: tuple[int, ...] = ()
    distinct: frozenset[str] = frozenset()
    numbers: dict[str, int] = {}
    anchor: Anchor | None = None
    anchors: list[Anchor] = []
    colour: Colour = Colour.RED
    side: Literal["port", "starboard"] = "port"
    step: Literal[1, 2] = 1
    maybe_side: Literal["port", "starboard"] | None = None
    maybe_step: Literal[1, None] = None
    maybe_colour: Colour | None = None
    port: int | str = 0
    maybe: str | None = None
    share: Annotated[int, Meta(ge=0, le=100)] = 0
    ratio: Annotated[float, Meta(lt=1, multiple_of=0.25)] = 0.0
    code: Annotated[str, Meta(min_length=1, max_length=3, pattern="^[A-Z]+$")] = "A"
    few: Annotated[list[str], Meta(max_length=2)] = []
    pairs: Annotated[dict[str, str], Meta(min_length=1, description="At least one.")] = {}
    small: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0


class Boat(CustomResource, group="example.com", version="v1", plural="boats"):
    """Something that floats."""

    spec: Everything


INTEGER = {"type": "integer", "format": "int64"}
STRING = {"type": "string"}
ANCHOR = {
    "type": "object",
    "description": "Holds a boat.",
    "properties": {
        "weightKg": INTEGER | {"minimum": 0, "exclusiveMinimum": True, "description": "How heavy it is."},
        "rope": STRING,
    },
    "required": ["weightKg"],
}
SCHEMAS = {
    "boolean": {"type": "boolean"},
    "whole": INTEGER,
    "number": {"type": "number"},
    "text": STRING,
    "instant": STRING | {"format": "date-time", "nullable": True},
    "day": STRING | {"format": "date", "nullable": True},
    "raw": STRING | {"format": "byte"},
    "anything": {"x-kubernetes-preserve-unknown-fields": True},
    "texts": {"type": "array", "items": STRING},
    "several": {"type": "array", "items": INTEGER},
    "distinct": {"type": "array", "items": STRING, "x-kubernetes-list-type": "set"},
    "numbers": {"type": "object", "additionalProperties": INTEGER},
    "anchor": ANCHOR | {"nullable": True},
    "anchors": {"type": "array", "items": ANCHOR},
    "colour": STRING | {"enum": ["red", "blue"]},
    "side": STRING | {"enum": ["port", "starboard"]},
    "step": {"type": "integer", "enum": [1, 2]},
    "maybeSide": STRING | {"enum": ["port", "starboard", None], "nullable": True},
    "maybeStep": {"type": "integer", "enum": [1, None], "nullable": True},
    "maybeColour": STRING | {"enum": ["red", "blue", None], "nullable": True},
    "port": {"x-kubernetes-int-or-string": True},
    "maybe": STRING | {"nullable": True},
    "share": INTEGER | {"minimum": 0, "maximum": 100},
    "ratio": {"type": "number", "maximum": 1, "exclusiveMaximum": True, "multipleOf": 0.25},
    "small": {"type": "integer", "format": "int32"},
    "code": STRING | {"minLength": 1, "maxLength": 3, "pattern": "^[A-Z]+$"},
    "few": {"type": "array", "items": STRING, "maxItems": 2},
    "pairs": {
        "type": "object",
        "additionalProperties": STRING,
        "minProperties": 1,
        "description": "At least one.",
    },
}


def schema_of(kind: type[CustomResource]) -> Any:
    return definition_of(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


@pytest.mark.parametrize(("field", "expected"), SCHEMAS.items(), ids=SCHEMAS.keys())
def test_the_schema_of_a_field_follows_from_its_type(field, expected):
    assert schema_of(Boat)["properties"]["spec"]["properties"][field] == expected


def test_every_field_has_a_case():
    assert {field.encode_name for field in msgspec.structs.fields(Everything)} == set(SCHEMAS)


def test_names_and_scope_are_those_of_the_class():
    definition = definition_of(Boat)
    assert definition["metadata"] == {"name": "boats.example.com"}
    assert definition["spec"]["group"] == "example.com"
    assert definition["spec"]["scope"] == "Namespaced"
    assert definition["spec"]["names"] == {
        "kind": "Boat",
        "listKind": "BoatList",
        "plural": "boats",
        "singular": "boat",
    }
    assert definition["spec"]["versions"][0]["name"] == "v1"
    assert "subresources" not in definition["spec"]["versions"][0]


def test_the_root_describes_the_kind_and_leaves_metadata_to_the_server():
    root = schema_of(Boat)
    assert root["description"] == "Something that floats."
    assert root["required"] == ["spec"]
    assert root["properties"].keys() == {"apiVersion", "kind", "metadata", "spec"}
    assert root["properties"]["metadata"] == {"type": "object"}


class Status(ResourcePart):
    ready: bool = False


class Ship(CustomResource, group="example.com", version="v1", plural="ships", scope="Cluster"):
    status: Status = msgspec.field(default_factory=Status)


def test_a_kind_with_a_status_has_the_subresource():
    definition = definition_of(Ship)
    assert definition["spec"]["scope"] == "Cluster"
    assert definition["spec"]["versions"][0]["subresources"] == {"status": {}}
    assert "required" not in schema_of(Ship)


class Raft(CustomResource, group="example.com", version="v1", plural="rafts", status_subresource=False):
    status: Status = msgspec.field(default_factory=Status)


def test_a_status_may_be_written_with_the_rest_of_the_object():
    assert "subresources" not in definition_of(Raft)["spec"]["versions"][0]
    assert "status" in schema_of(Raft)["properties"]


class Approved(CustomResource, group="mine.k8s.io", version="v1", approved="unapproved, experimental-only"):
    pass


class Inherited(Approved, group="mine.k8s.io", version="v2"):
    pass


class ApprovedByAttribute(CustomResource, group="x.kubernetes.io", version="v1"):
    APPROVED = "https://example.com/review/1"


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [
        (Approved, "unapproved, experimental-only"),
        (Inherited, "unapproved, experimental-only"),
        (ApprovedByAttribute, "https://example.com/review/1"),
    ],
)
def test_a_kind_in_a_protected_group_names_its_approval(kind, annotation):
    assert definition_of(kind)["metadata"]["annotations"] == {"api-approved.kubernetes.io": annotation}


class Unapproved(CustomResource, group="mine.k8s.io", version="v1"):
    pass


class VaguelyApproved(CustomResource, group="k8s.io", version="v1", approved="yes"):
    pass


class NoDomain(CustomResource, group="mine", version="v1"):
    pass


class NotKubernetes(CustomResource, group="myk8s.io", version="v1"):
    pass


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (Unapproved, "mine.k8s.io is a protected group"),
        (VaguelyApproved, "k8s.io is a protected group"),
        (NoDomain, "must be a domain with at least one dot"),
    ],
)
def test_what_the_server_would_refuse_is_reported_before(kind, message):
    with pytest.raises(OperatorMistake, match=message):
        definition_of(kind)


def test_a_group_that_only_ends_alike_is_not_protected():
    assert "annotations" not in definition_of(NotKubernetes)["metadata"]


class Knot(ResourcePart):
    inner: Knot | None = None


class Tagged(ResourcePart, tag=True):
    size: int = 0


class Unsayable(ResourcePart):
    either: int | float
    money: Decimal
    by_number: dict[int, str]
    mixed: Literal[1, "one"]
    knots: list[Knot]
    tagged: Tagged


class Impossible(CustomResource, group="example.com", version="v1"):
    spec: Unsayable


def test_every_field_without_a_structural_schema_is_named():
    with pytest.raises(OperatorMistake) as mistake:
        definition_of(Impossible)
    assert [problem.path for problem in mistake.value.problems] == [
        "spec.either",
        "spec.money",
        "spec.byNumber",
        "spec.mixed",
        "spec.knots[].inner",
        "spec.tagged",
    ]


class Unreadable(CustomResource, group="example.com", version="v1"):
    spec: NoSuchType  # type: ignore[name-defined]  # noqa: F821


def test_type_hints_that_cannot_be_read_are_the_authors_to_mend():
    with pytest.raises(OperatorMistake, match="its type hints cannot be read: name 'NoSuchType' is not defined"):
        definition_of(Unreadable)


class Undocumented(CustomResource, group="example.com", version="v1"):
    pass


def test_a_class_without_a_docstring_does_not_borrow_one():
    assert "description" not in schema_of(Undocumented)


BOATS = Kind("example.com", "v1", "Boat", "boats")
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a number beyond its bound": ({"share": 101}, "spec.share in body should be less than or equal to 100"),
    "text for a number": ({"numbers": {"a": "one"}}, 'spec.numbers.a in body must be of type integer: "string"'),
    "no value for a field without a default": ({"anchors": [{}]}, "spec.anchors[0].weightKg: Required value"),
}


async def test_an_api_server_takes_it_and_holds_objects_to_it():
    server = EmbeddedApiServer()
    await server.start()
    connection = Connection(server=server.url, source="the test", ca_data=server.ca_pem.encode(), token=server.token)
    try:
        async with ApiClient(connection) as client:
            await client.create(CRDS, definition_of(Boat))
            boat = {"apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "good"}}
            await client.create(BOATS, boat | {"spec": {"share": 100, "anchors": [{"weightKg": 1}]}}, "default")
            for spec, message in REFUSED.values():
                with pytest.raises(ApiError, match=re.escape(message)):
                    await client.create(BOATS, boat | {"metadata": {"name": "bad"}, "spec": spec}, "default")
    finally:
        await server.stop()
