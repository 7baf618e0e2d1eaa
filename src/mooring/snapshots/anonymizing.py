"""Replaces names in a snapshot, so that it can be shared, and keeps every decision what it was.

The same text gets the same replacement everywhere in the file: a node's name, the label that repeats it, and the
selector that requires it still agree. Replacements are numbered in the order of the texts they stand for, because order
decides where else nothing does: which of equal nodes is first, which device of a pool. So there are two passes, the
first of which collects the texts. What a replacement stands for is not in the file, nor can it be computed from it.

What has a meaning of its own stays: see `docs/snapshots.md`. Where Kubernetes derives one name from another (the pods
and claims of a StatefulSet, the claim of an ephemeral volume), the replacement is derived alike.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mooring.objects.migration import (
    BETA_REGION,
    BETA_ZONE,
    IN_TREE,
    REGION,
    ZONE,
    ZONES_IN_LABEL,
)
from mooring.objects.names import label_value, qualified_name
from mooring.objects.quantity import exact
from mooring.objects.selectors import integer
from mooring.snapshots.fields import ANNOTATION_VALUES, NODE, Entries, Leaf
from mooring.snapshots.file_format import Header, Spool
from mooring.snapshots.kinds import fields_of
from mooring.snapshots.pruning import Document

KEPT = frozenset(
    [
        *("", "default", "kube-system", "kube-public", "kube-node-lease", "kubernetes"),
        *("system-cluster-critical", "system-node-critical"),
    ]
)
"""Names that every cluster has."""
KEPT_KEYS = frozenset(
    [
        *("pod-template-hash", "pod-template-generation", "controller-revision-hash", "controller-uid", "job-name"),
        *(each.zone_key for each in IN_TREE if each.zone_key is not None),
    ]
)
"""Label keys without a well-known prefix that Kubernetes gives a meaning."""
KEPT_DOMAINS = ("kubernetes.io", "k8s.io", "mooring.dev")
KEYS_OF_KEPT_VALUES = frozenset(
    [
        *("kubernetes.io/os", "kubernetes.io/arch", "beta.kubernetes.io/os", "beta.kubernetes.io/arch"),
        *("apps.kubernetes.io/pod-index", "batch.kubernetes.io/job-completion-index", "pod-template-generation"),
    ]
)
"""Labels whose values Kubernetes defines."""
KEPT_DRIVERS = frozenset([each.driver for each in IN_TREE] + [each.plugin for each in IN_TREE])
ROLES_OF_LABELS = {
    **dict.fromkeys([ZONE, BETA_ZONE, *(each.zone_key for each in IN_TREE if each.zone_key)], "zone"),
    **dict.fromkeys([REGION, BETA_REGION], "region"),
}
ORDERING = ("Gt", "Lt")

_FIRST_ROLES, _LAST_ROLES = ("node", "namespace", "zone"), ("value", "key", "owner", "")
"""A text with several roles is called by one of the first, never by one of the last, else simply `name`."""
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_OF_STATEFUL_SET = re.compile(r"(?P<owner>.+)-(?P<ordinal>0|[1-9][0-9]*)")
_GENERATED_REQUEST = re.compile(r"container-[0-9]+-request-[0-9]+")
_PARTS_OF_HANDLES = frozenset(
    [
        *("", "aws:", "projects", "zones", "regions", "disks", "UNSPECIFIED", "subscriptions", "resourceGroups"),
        *("providers", "Microsoft.Compute"),
    ]
)
_MACROS = re.compile(r"\.(all|exists|exists_one|existsOne|map|filter|transformList|transformMap)\(")
_ANY_ADDRESS = ("", "0.0.0.0", "127.0.0.1", "::", "::1")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?")


class _Bare(NamedTuple):
    """A part of a derived name that is replaced by its number alone."""

    text: str


Part = str | int | _Bare


def anonymize(
    header: Header, documents: Callable[[], Iterator[Document]], into: Spool, *, keep_labels: Iterable[str] = ()
) -> Header:
    """Write the objects to the spool with their names replaced, and return their header; `documents` is called twice.

    `keep_labels`: label keys that stay, with their values, because a configuration or a plugin names them.
    """
    anonymizer = Anonymizer(keep_labels)
    for document in documents():
        anonymizer.collect(document)
    anonymizer.number()
    into.begin("objects")
    for document in documents():
        into.add(anonymizer.replaced(document))
    into.finish()
    return msgspec.structs.replace(header, anonymized=True, annotations=[])


class Anonymizer:
    """`collect` every object, then `number`, then every object can be `replaced`."""

    def __init__(self, keep_labels: Iterable[str] = ()) -> None:
        self._secret = secrets.token_bytes(32)
        self._kept_labels = frozenset(keep_labels)
        self._roles: dict[str, str] = {}
        self._derived: dict[str, tuple[Part, ...]] = {}
        self._numbers: dict[str, str] | None = None
        """None while texts are collected: they are then left as they are."""
        self._ordered_keys: set[str] = set()
        """Labels and taints that are compared as numbers."""
        self._expressions: list[str] = []
        self._kept_attributes: Callable[[str], bool] = lambda _: True
        self._claims: set[str] = set()
        self._claim_templates: dict[str, tuple[str, str]] = {}
        self._schema_fields: set[str] = set()
        self._schema_values: set[str] = set()
        self._groups: set[str] = set()

    def collect(self, document: Document) -> None:
        """Take note of the texts of one object."""
        assert self._numbers is None, "collect comes before number"
        self._walk(document, fields_of(document["apiVersion"], document["kind"]))
        match document["kind"]:
            case "Pod":
                self._collect_pod(document)
            case "StatefulSet":
                self._collect_stateful_set(document)
            case "PersistentVolumeClaim":
                self._claims.add(document["metadata"].get("name", ""))
            case "CustomResourceDefinition":
                self._groups.add(str(document["spec"].get("group")))
                self._collect_schema(document["spec"].get("versions"))

    def number(self) -> None:
        """Number all texts in their order."""
        self._derive()
        for parts in list(self._derived.values()):
            for part in parts:
                if isinstance(part, str | _Bare):
                    self._roles.setdefault(part.text if isinstance(part, _Bare) else part, "")
        width = len(str(len(self._roles)))
        self._numbers = {text: f"x{number:0{width}}" for number, text in enumerate(sorted(self._roles), start=1)}
        text = "\n".join(self._expressions)
        if not _MACROS.search(text):
            self._kept_attributes = frozenset(re.findall(r"\w+", text)).__contains__

    def replaced(self, document: Document) -> Document:
        """The object with every text replaced."""
        assert self._numbers is not None, "number comes before replaced"
        replaced: Document = self._walk(document, fields_of(document["apiVersion"], document["kind"]))
        return replaced

    # What one name has to do with another

    def _collect_pod(self, pod: Document) -> None:
        name = pod["metadata"].get("name", "")
        for owner in pod["metadata"].get("ownerReferences") or ():
            found = _OF_STATEFUL_SET.fullmatch(name)
            if owner.get("kind") == "StatefulSet" and found and found["owner"] == owner.get("name"):
                self._derived[name] = (found["owner"], int(found["ordinal"]))
        for volume in pod.get("spec", {}).get("volumes") or ():
            if volume.get("ephemeral") is not None:
                claim = f"{name}-{volume.get('name', '')}"
                self._derived[claim] = (name, volume.get("name", ""))

    def _collect_stateful_set(self, owner: Document) -> None:
        name = owner["metadata"].get("name", "")
        for template in owner.get("spec", {}).get("volumeClaimTemplates") or ():
            claim = template.get("metadata", {}).get("name", "")
            self._claim_templates[f"{claim}-{name}"] = (claim, name)
        for field in ("currentRevision", "updateRevision"):
            revision = owner.get("status", {}).get(field) or ""
            if revision.startswith(f"{name}-"):
                self._derived[revision] = (name, revision.removeprefix(f"{name}-"))

    def _derive(self) -> None:
        for claim in self._claims:
            found = _OF_STATEFUL_SET.fullmatch(claim)
            if found and found["owner"] in self._claim_templates:
                self._derived[claim] = (*self._claim_templates[found["owner"]], int(found["ordinal"]))
        for text, role in list(self._roles.items()):
            # CSI migration reads the region out of a zone's name: "europe-west1-b" is in "europe-west1".
            if role == "zone" and text.count("-") == 2:
                region, _, last = text.rpartition("-")
                self._roles.setdefault(region, "region")
                self._derived[text] = (region, _Bare(last))

    def _collect_schema(self, schema: Any) -> None:
        """The names of fields and the values that a definition prescribes: these are not the user's."""
        if isinstance(schema, list):
            for part in schema:
                self._collect_schema(part)
        elif isinstance(schema, dict):
            if isinstance(schema.get("properties"), dict):
                self._schema_fields.update(schema["properties"])
            for value in (*(schema.get("enum") or ()), schema.get("default")):
                if isinstance(value, str):
                    self._schema_values.add(value)
            for part in schema.values():
                self._collect_schema(part)

    # Replacing

    def _walk(self, value: Any, table: Any) -> Any:
        if value is None:
            return None
        if isinstance(table, Leaf):
            return getattr(self, f"_{table.how}")(value, table)
        if isinstance(table, Entries):
            return {self._walk(key, table.key): self._walk(part, table.value) for key, part in value.items()}
        if isinstance(table, list):
            return [self._walk(item, table[0]) for item in value]
        rest = table.get("*")
        return {
            field: self._walk(part, table[field])
            if field in table
            else part
            if rest is None or field in ("apiVersion", "kind")
            else self._walk(part, rest)
            for field, part in value.items()
        }

    def _text(self, text: str, role: str) -> str:
        """The replacement of a text, or the text itself while texts are collected."""
        if text in KEPT:
            return text
        if _UUID.fullmatch(text):
            return self._uuid(text)
        if self._numbers is None:
            known = self._roles.setdefault(text, role)
            if known != role:
                self._roles[text] = _common(known, role)
            return text
        if (parts := self._derived.get(text)) is not None:
            return "-".join(self._part(part) for part in parts)
        role = self._roles[text]
        return f"{self._numbers[text]}-{role}" if role else self._numbers[text]

    def _part(self, part: Part) -> str:
        assert self._numbers is not None
        match part:
            case int():
                return str(part)
            case _Bare(text):
                return self._numbers[text]
        return self._text(part, "")

    def _plain(self, value: Any, _: Leaf) -> Any:
        return value

    def _name(self, value: Any, leaf: Leaf) -> Any:
        return self._text(value, leaf.role) if isinstance(value, str) else value

    def _uid(self, value: Any, _: Leaf) -> Any:
        return self._uuid(value) if isinstance(value, str) else value

    def _uuid(self, uid: str) -> str:
        if not uid or self._numbers is None:
            return uid
        return str(uuid.UUID(bytes=hmac.digest(self._secret, uid.encode(), hashlib.sha256)[:16], version=4))

    def _key(self, key: str, _: Leaf | None = None) -> str:
        """A label key, a taint's, or another name with a domain."""
        if key in KEPT_KEYS or key in self._kept_labels or _is_well_known(key):
            return key
        return self._text(key, "key") + _if_invalid(key, qualified_name)

    def _value(self, key: str, value: Any) -> Any:
        """The value of a label or a taint."""
        if not isinstance(value, str) or key in KEYS_OF_KEPT_VALUES or key in self._kept_labels:
            return value
        if key in self._ordered_keys and integer(value) is not None:
            return value
        role = ROLES_OF_LABELS.get(key, "value")
        if role in ("zone", "region") and ZONES_IN_LABEL in value:
            return ZONES_IN_LABEL.join(self._text(part, role) for part in value.split(ZONES_IN_LABEL))
        return self._text(value, role) + _if_invalid(value, label_value)

    def _condition(self, type_: str, _: Leaf) -> str:
        return self._key(type_) if "/" in type_ else type_

    def _driver(self, driver: str, _: Leaf) -> str:
        if driver in KEPT_DRIVERS or _is_well_known(f"{driver}/") or driver.startswith("kubernetes.io/"):
            return driver
        return self._text(driver, "driver")

    def _handle(self, handle: str, _: Leaf) -> str:
        """Of a volume: each part between slashes, because drivers and CSI migration compose them."""
        return "/".join(
            part
            if part in _PARTS_OF_HANDLES
            else f"vol-{self._text(part, 'handle')}"
            if part.startswith("vol-")
            else self._text(part, "handle")
            for part in handle.split("/")
        )

    def _ip(self, address: str, _: Leaf) -> str:
        if address in _ANY_ADDRESS:
            return address
        self._text(address, "address")
        if self._numbers is None:
            return address
        number = int(self._numbers[address][1:])
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

    def _pod_image(self, image: str, _: Leaf) -> str:
        """As ImageLocality compares it: without a tag it is the latest."""
        return image and f"{self._text(image if _has_tag(image) else f'{image}:latest', 'image')}:1"

    def _node_image(self, image: str, _: Leaf) -> str:
        return f"{self._text(image, 'image')}:1" if _has_tag(image) else self._text(image, "image")

    def _request(self, name: str, _: Leaf) -> str:
        if _GENERATED_REQUEST.fullmatch(name):
            return name
        return "/".join(self._text(part, "request") for part in name.split("/"))

    def _labels(self, labels: Mapping[str, str], _: Leaf) -> Document:
        return {self._key(key): self._value(key, value) for key, value in labels.items()}

    def _annotations(self, annotations: Mapping[str, str], _: Leaf) -> Document:
        return {
            key if key in ANNOTATION_VALUES else self._key(key): self._walk(
                value, ANNOTATION_VALUES.get(key, Leaf("name", "value"))
            )
            for key, value in annotations.items()
        }

    def _requirement(self, requirement: Document, _: Leaf) -> Document:
        key = requirement.get("key", "")
        self._note_order(key, requirement)
        replaced = {**requirement, "key": self._key(key)}
        if requirement.get("values") is not None:
            replaced["values"] = [self._value(key, value) for value in requirement["values"]]
        return replaced

    def _field_requirement(self, requirement: Document, _: Leaf) -> Document:
        """Of a node's fields: its name is the only one that can be selected."""
        values = requirement.get("values")
        return requirement if values is None else {**requirement, "values": [self._name(each, NODE) for each in values]}

    def _taint(self, taint: Document, _: Leaf) -> Document:
        key = taint.get("key") or ""
        self._note_order(key, taint)
        replaced = dict(taint)
        if key:
            replaced["key"] = self._key(key)
        if taint.get("value"):
            replaced["value"] = self._value(key, taint["value"])
        return replaced

    def _note_order(self, key: str, requirement: Document) -> None:
        if requirement.get("operator") in ORDERING:
            self._ordered_keys.add(key)

    def _cel(self, expression: str, _: Leaf) -> str:
        if self._numbers is None:
            self._expressions.append(expression)
        return expression

    def _attributes(self, attributes: Mapping[str, Document], _: Leaf) -> Document:
        """Of a device: texts are compared with each other, or by the CEL expressions that name the attribute."""
        return {
            name: attribute
            if self._numbers is not None and self._kept_attributes(name.rpartition("/")[2])
            else {form: self._attribute(form, value) for form, value in attribute.items()}
            for name, attribute in attributes.items()
        }

    def _attribute(self, form: str, value: Any) -> Any:
        if isinstance(value, list):
            return [self._attribute(form, each) for each in value]
        return self._text(value, "attribute") if form in ("string", "strings") and isinstance(value, str) else value

    def _owner(self, owner: Document, _: Leaf) -> Document:
        replaced = dict(owner)
        group, slash, version = str(owner.get("apiVersion", "")).partition("/")
        kind = str(owner.get("kind", ""))
        if slash and "." in group and not _is_well_known(f"{group}/") and group not in self._groups:
            replaced |= {"apiVersion": f"{self._text(group, 'group')}/{version}", "kind": self._text(kind, "kind")}
        return replaced | {"name": self._text(owner.get("name", ""), "owner"), "uid": self._uuid(owner.get("uid", ""))}

    def _whole(self, value: Any, leaf: Leaf) -> Any:
        """A part of a custom object: what looks like a number, and what the definition prescribes, stays."""
        match value:
            case dict():
                return {self._custom_key(key, part): self._whole(part, leaf) for key, part in value.items()}
            case list():
                return [self._whole(part, leaf) for part in value]
            case str() if not self._is_prescribed(value):
                return self._text(value, "value")
        return value

    def _custom_key(self, key: str, value: Any) -> str:
        if not self._schema_fields or key in self._schema_fields or _is_amount(value):
            return key
        return self._key(key)

    def _is_prescribed(self, text: str) -> bool:
        return text in self._schema_values or _is_amount(text) or bool(_DATE.fullmatch(text))


def _common(one: str, other: str) -> str:
    """The role of a text that has both."""
    for role in _FIRST_ROLES:
        if role in (one, other):
            return role
    if one in _LAST_ROLES and other in _LAST_ROLES:
        return min(one, other, key=_LAST_ROLES.index)
    return other if one in _LAST_ROLES else one if other in _LAST_ROLES else "name"


def _is_well_known(key: str) -> bool:
    domain, slash, _ = key.partition("/")
    return bool(slash) and (domain in KEPT_DOMAINS or domain.endswith(tuple(f".{each}" for each in KEPT_DOMAINS)))


def _has_tag(image: str) -> bool:
    return image.rfind(":") > image.rfind("/")


def _is_amount(value: Any) -> bool:
    try:
        exact(value if isinstance(value, str) else str(value))
    except ValueError:
        return isinstance(value, bool) or value in ("true", "false")
    return True


def _if_invalid(text: str, check: Callable[[str], Any]) -> str:
    """What makes the replacement of an invalid text invalid, too: no selector with it matches anything."""
    return "!" if text and check(text) else ""
