"""Requests at random, the same for the same seed: half of them nearly right, so that they come far, half junk."""

from __future__ import annotations

import json
import random
import string
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from mooring.apiserver.resources import Resource, ResourceTable
from mooring.apiserver.schema import (
    ApiType,
    BooleanType,
    IntegerType,
    IntOrStringType,
    ListType,
    MapType,
    NumberType,
    QuantityType,
    StructType,
    TimeType,
    schema_of,
)

KINDS = 10
JSON, YAML, PROTOBUF = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PATCHES = tuple(f"application/{kind}-patch+json" for kind in ("json", "merge", "strategic-merge"))
TEXTS = ["", "a", "web", "it", "node-1", "default", "Always", "None", "x/y", "-", "..", "25%", "é", "a=b", "\x00", "\n"]
TEXTS += [
    "\u202e",
    "\ud7ff",
    "0",
    "-1",
    "true",
    "null",
    "1e99999999",
    "9" * 400,
    "a" * 300,
    "²",
    "٣",
    "{}",
    "[]",
    "$patch",
]
NUMBERS = [0, 1, -1, 80, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, 0.5, -0.0, 1e308, 1e-308]
QUANTITIES = [
    "0",
    "1",
    "500m",
    "-1",
    "1Gi",
    "1e3",
    "1e99999999",
    "1E+99999",
    "1e-99999999",
    "9" * 999,
    "8Ei",
    2,
    0.5,
    "",
]
TIMES = ["2023-11-14T22:13:20Z", "0000-00-00T00:00:00Z", "9999-12-31T23:59:59.999999999+23:59", "0001-01-01T00:00:00Z"]
SELECTORS = [
    "a=b",
    "a in (b,c)",
    "!a",
    "a>1",
    "a notin (",
    "(" * 500,
    "," * 500,
    "a=b=c",
    "a" * 3000,
    "in in in",
    "a in (,)",
]
SELECTORS += ["metadata.name=it", "spec.nodeName!=x", "metadata.name=\\", "=", "!=", "a\\,b=c", "status.phase==Running"]
MEDIA = [
    "",
    "*/*",
    JSON,
    YAML,
    PROTOBUF,
    "text/html",
    ";",
    "application/json;as=Table;v=v1;g=meta.k8s.io",
    "a/b;" * 2000,
]
MEDIA += [f"{JSON};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "application/json, " * 2000, f"{JSON};q=nan", *PATCHES]
BOOLEANS = ["", "0", "1", "true", "False", "T", "yes", "é"]
MATCHES = ["", "Exact", "NotOlderThan", "Sideways"]
TOKENS = ["", "x", "e30", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOlsiIiwiIl19", "/" * 100]


@dataclass
class Request:
    """What is sent."""

    method: str
    target: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.target[:200]} {dict(list(self.headers.items())[:3])} {self.body[:400]!r}"


class RandomRequests:
    """One seed, one sequence."""

    def __init__(self, seed: int, table: ResourceTable) -> None:
        self._random = random.Random(seed)
        rows = sorted(table, key=lambda row: (row.group, row.version, row.plural))
        # Few kinds, so that many requests meet an object that an earlier one made.
        self._rows = self._random.sample(rows, KINDS)

    def next(self) -> Request:
        chance = self._random
        row = chance.choice(self._rows)
        method = chance.choice(
            ["GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS"]
        )
        target = self._path(row, method) + self._query()
        headers = {"Accept": chance.choice(MEDIA)} if chance.random() < 0.5 else {}
        if chance.random() < 0.05:
            headers[chance.choice(["Range", "If-Match", "Expect", "X-Remote-User", "Accept-Encoding"])] = "bytes=0-,-1"
        if method in ("GET", "HEAD", "OPTIONS"):
            return Request(method, target, headers=headers)
        content_type = chance.choice(PATCHES) if method == "PATCH" else JSON
        if chance.random() < 0.1:
            content_type = chance.choice(MEDIA)
        headers["Content-Type"] = content_type
        return Request(method, target, self._body(row, method, content_type), headers)

    def _path(self, row: Resource, method: str) -> str:
        chance = self._random
        if chance.random() < 0.1:
            return "/" + "/".join(quote(self._text(), safe="") for _ in range(chance.randint(0, 8)))
        path = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
        if row.namespaced and chance.random() < 0.95:
            path += "/namespaces/" + (quote(self._text(), safe="") if chance.random() < 0.05 else "default")
        path += f"/{row.plural}"
        if method in ("PUT", "PATCH", "DELETE") or (method != "POST" and chance.random() < 0.4):
            path += "/" + (quote(self._text(), safe="") if chance.random() < 0.1 else "it")
            if chance.random() < 0.3:
                names = [each.name for each in row.subresources] + ["status", "scale", "log"]
                path += "/" + chance.choice(names)
        return path

    def _query(self) -> str:
        chance = self._random
        choices: dict[str, Callable[[], str]] = {
            "limit": self._number,
            "timeoutSeconds": lambda: "-1",
            "gracePeriodSeconds": self._number,
            "resourceVersion": self._number,
            "continue": lambda: chance.choice(TOKENS),
            "labelSelector": lambda: chance.choice(SELECTORS),
            "fieldSelector": lambda: chance.choice(SELECTORS),
            "resourceVersionMatch": lambda: chance.choice(MATCHES),
            "sendInitialEvents": lambda: chance.choice(BOOLEANS),
            "allowWatchBookmarks": lambda: chance.choice(BOOLEANS),
            "orphanDependents": lambda: chance.choice(BOOLEANS),
            "includeObject": lambda: chance.choice(["None", "Object", "Metadata", "x"]),
            "dryRun": lambda: chance.choice(["All", "", "x"]),
            "fieldValidation": lambda: chance.choice(["Strict", "Warn", "Ignore", "x"]),
            "fieldManager": self._text,
            "propagationPolicy": lambda: chance.choice(["Foreground", "Background", "Orphan", "x"]),
            "pretty": self._text,
        }
        if chance.random() < 0.5:
            return ""
        names = chance.sample(sorted(choices), chance.randint(1, 4))
        parts = [f"{name}={quote(choices[name](), safe='')}" for name in names]
        if chance.random() < 0.2:
            parts += [f"watch={chance.choice(BOOLEANS)}", "timeoutSeconds=-1"]
        return "?" + "&".join(parts)

    def _number(self) -> str:
        return self._random.choice(["0", "1", "-1", "2", "x", "", "1e3", str(2**63), str(-(2**63)), "9" * 5000, "²"])

    def _text(self) -> str:
        if self._random.random() < 0.2:
            return "".join(self._random.choices(string.printable, k=self._random.randint(0, 30)))
        return self._random.choice(TEXTS)

    def _body(self, row: Resource, method: str, content_type: str) -> bytes:
        chance = self._random
        if content_type == PROTOBUF:
            return self._protobuf()
        if content_type == PATCHES[0] and chance.random() < 0.9:
            return json.dumps([self._operation() for _ in range(chance.randint(0, 6))]).encode()
        if chance.random() < 0.05:
            return chance.randbytes(chance.randint(0, 200))
        if method == "DELETE":
            value = self._value(schema_of("io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"))
        elif row.type_name is None:
            value = self._anything()
        else:
            value = self._value(schema_of(row.type_name))
        if isinstance(value, dict) and chance.random() < 0.95:
            value.pop("kind", None)
            value.pop("apiVersion", None)
            if method in ("POST", "PUT") and chance.random() < 0.95:
                metadata = value.get("metadata")
                value["metadata"] = {**(metadata if isinstance(metadata, dict) else {}), "name": "it"}
                value["metadata"].pop("namespace", None)
                value["metadata"].pop("resourceVersion", None)
            if method == "PATCH" and content_type == PATCHES[2]:
                self._instruct(value)
        return json.dumps(value, ensure_ascii=chance.random() < 0.5).encode(errors="replace")

    def _instruct(self, value: dict[str, Any]) -> None:
        """Put instructions of strategic merge into it, right or wrong ones."""
        chance = self._random
        for item in [value, *(each for each in value.values() if isinstance(each, dict))]:
            if chance.random() < 0.3:
                name = chance.choice(
                    ["$patch", "$retainKeys", "$setElementOrder/containers", "$deleteFromPrimitiveList/finalizers"]
                )
                item[name] = chance.choice(["replace", "delete", "merge", self._anything(), ["name"], [{"name": "a"}]])
            for inner in item.values():
                if isinstance(inner, list) and chance.random() < 0.2:
                    inner.append({"$patch": chance.choice(["replace", "delete", self._anything()])})

    def _operation(self) -> Any:
        chance = self._random
        if chance.random() < 0.05:
            return self._anything()
        paths = [
            "",
            "/",
            "/spec",
            "/metadata",
            "/metadata/labels",
            "/metadata/labels/a",
            "/spec/containers/0",
            "/status",
        ]
        paths += ["/spec/containers/-", "/spec/containers/-1", "/metadata/name", "/a/b", "x", "/~1~0", "/data", "/kind"]
        return {
            "op": chance.choice(["add", "remove", "replace", "move", "copy", "test", "jump"]),
            "path": chance.choice(paths),
            "from": chance.choice(paths),
            "value": self._anything(),
        }

    def _protobuf(self) -> bytes:
        chance = self._random
        header = b"\n\x02v1\x12\x03Pod"
        inner = chance.randbytes(chance.randint(0, 60))
        return b"k8s\x00\n" + bytes([len(header)]) + header + b"\x12" + bytes([len(inner)]) + inner

    def _anything(self, depth: int = 0) -> Any:
        chance = self._random
        which = chance.randint(0, 7 if depth < 4 else 4)
        if which == 0:
            return None
        if which == 1:
            return chance.random() < 0.5
        if which == 2:
            return chance.choice(NUMBERS)
        if which <= 4:
            return self._text()
        if which == 5:
            return [self._anything(depth + 1) for _ in range(chance.randint(0, 3))]
        return {self._text(): self._anything(depth + 1) for _ in range(chance.randint(0, 3))}

    def _value(self, kind: ApiType, depth: int = 0) -> Any:
        """A value of that type; now and then one that is not."""
        chance = self._random
        if chance.random() < 0.02:
            return self._anything()
        if isinstance(kind, StructType):
            names = sorted(kind.fields)
            most = 6 if depth < 6 else 0
            chosen = set(chance.sample(names, min(len(names), chance.randint(0, most))))
            if depth == 0:
                chosen |= {"spec", "metadata"} & set(names)
            chosen |= {name for name in kind.required if chance.random() < 0.8 and depth < 8}
            return {name: self._value(kind.fields[name], depth + 1) for name in sorted(chosen) if name in kind.fields}
        if isinstance(kind, ListType):
            return [self._value(kind.of, depth + 1) for _ in range(chance.randint(0, 2))]
        if isinstance(kind, MapType):
            return {self._text(): self._value(kind.of, depth + 1) for _ in range(chance.randint(0, 2))}
        scalars: dict[type[ApiType], Callable[[], Any]] = {
            BooleanType: lambda: chance.random() < 0.5,
            IntegerType: lambda: chance.choice([0, 1, -1, 80, 2**31 - 1]),
            NumberType: lambda: chance.choice(NUMBERS),
            IntOrStringType: lambda: chance.choice([0, 1, -1, "25%", "x"]),
            QuantityType: lambda: chance.choice(QUANTITIES),
            TimeType: lambda: chance.choice(TIMES),
        }
        return next((make for type_, make in scalars.items() if isinstance(kind, type_)), self._text)()
