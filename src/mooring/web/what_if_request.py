"""What a user wants to try: pods to add, nodes to cordon, drain or add, weights or a whole configuration.

Everything is checked against the cluster before anything is computed. Nothing here reads a file or opens a connection:
manifests and configurations come as text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec

from mooring.base.errors import OperatorMistake
from mooring.base.nesting import Decoder
from mooring.config import Configuration, load_configuration
from mooring.framework import FeatureGates, Point
from mooring.framework.registry import Registry
from mooring.web.errors import RequestError, not_found, refused

MOST_ADDED_NODES = 1_000
MOST_TEXT = 512 * 1024
MOST_NAMES = 1_000
HIGHEST_WEIGHT = 1_000


class AddedNodes(msgspec.Struct, forbid_unknown_fields=True):
    """Nodes that the cluster has not."""

    like: str | None = None
    """The name of one that it has."""
    template: str | None = None
    """A manifest."""
    count: int = 1


class ComparedConfiguration(msgspec.Struct, forbid_unknown_fields=True):
    config: str


class WhatIfRequest(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """The body of `POST /what-if`."""

    pods: str = ""
    counts: dict[str, int] = {}
    """How often a pod of the manifests arrives, by its name; once unless given."""
    cordon: list[str] = []
    uncordon: list[str] = []
    drain: list[str] = []
    add_nodes: list[AddedNodes] = []
    weights: dict[str, Any] = {}
    """Plugin → weight, of every profile; or profile → plugin → weight."""
    config: str | None = None
    pod: str | None = None
    """`namespace/name` of one that there is: it is decided as if it were not bound."""
    compare: ComparedConfiguration | None = None
    reschedule: bool = False
    """All pods are taken off their nodes, and scheduled again."""

    @property
    def is_of_one_pod(self) -> bool:
        """Whether a single decision on the mirror is all it takes."""
        return self.pod is not None and not (
            self.pods or self.drain or self.add_nodes or self.config or self.compare or self.reschedule
        )


_decoder = Decoder(WhatIfRequest)


def read_request(body: bytes) -> WhatIfRequest:
    """Decoded and bounded. Raises `RequestError` that names the field."""
    try:
        request: WhatIfRequest = _decoder.decode(body)
    except msgspec.DecodeError as error:
        message, _, where = str(error).partition(" - at `$.")
        raise RequestError(400, f"the request cannot be read: {message}.", field=where.rstrip("`") or None) from error
    for field, text in (("pods", request.pods), ("config", request.config or "")):
        if len(text) > MOST_TEXT:
            raise RequestError(413, f"{field} has more than {MOST_TEXT} characters.", field=field)
    for field, names in (("cordon", request.cordon), ("uncordon", request.uncordon), ("drain", request.drain)):
        if len(names) > MOST_NAMES:
            raise RequestError(413, f"{field} names more than {MOST_NAMES} nodes.", field=field)
    added = 0
    for place, each in enumerate(request.add_nodes):
        if (each.like is None) == (each.template is None):
            raise RequestError(400, "name either a node, by `like`, or a `template`.", field=f"addNodes[{place}]")
        if each.count < 1:
            raise RequestError(400, "count must be 1 or more.", field=f"addNodes[{place}].count")
        added += each.count
    if added > MOST_ADDED_NODES:
        raise RequestError(413, f"at most {MOST_ADDED_NODES} nodes can be added, got {added}.", field="addNodes")
    return request


def check_nodes(request: WhatIfRequest, known: Mapping[str, Any]) -> None:
    """That the cluster has the nodes that are named."""
    named = [("cordon", request.cordon), ("uncordon", request.uncordon), ("drain", request.drain)]
    named.append(("addNodes", [each.like for each in request.add_nodes if each.like is not None]))
    for field, names in named:
        for name in names:
            if name not in known:
                error = not_found("node", name, known)
                raise RequestError(400, error.message, field=field, near=error.near)


def changed_weights(request: WhatIfRequest, profile: str, weights: Mapping[str, int]) -> dict[str, int] | None:
    """The weights of a profile with those of the request; None: it changes none. 0: the plugin does not score."""
    wanted: dict[str, Any] = {}
    for name, value in request.weights.items():
        if isinstance(value, dict):
            wanted |= value if name == profile else {}
        else:
            wanted[name] = value
    if not wanted:
        return None
    for name, value in wanted.items():
        field = f"weights.{name}"
        if name not in weights:
            error = not_found("scoring plugin", name, weights)
            raise RequestError(400, f"{error.message[:-1]} in profile {profile}.", field=field, near=error.near)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= HIGHEST_WEIGHT:
            raise RequestError(400, f"a weight is a whole number from 0 to {HIGHEST_WEIGHT}.", field=field)
    return {**weights, **wanted}


def configured(
    request: WhatIfRequest, current: Configuration, registry: Registry, gates: FeatureGates | None
) -> Configuration:
    """The configuration to try: that of the request or the current one, with the weights of the request."""
    loaded = current if request.config is None else loaded_text(request.config, registry, gates, "config")
    if not request.weights:
        return without_extenders(loaded)
    for name, value in request.weights.items():
        if isinstance(value, dict) and name not in [profile.scheduler_name for profile in loaded.profiles]:
            raise not_found("profile", name, [profile.scheduler_name for profile in loaded.profiles])
    profiles = []
    for profile in loaded.profiles:
        uses = profile.points[Point.SCORE]
        weights = changed_weights(request, profile.scheduler_name, {use.name: use.weight or 1 for use in uses})
        if weights is not None:
            scored = tuple(dataclasses.replace(use, weight=weights[use.name]) for use in uses if weights[use.name] > 0)
            profile = dataclasses.replace(profile, points={**profile.points, Point.SCORE: scored})
        profiles.append(profile)
    return without_extenders(dataclasses.replace(loaded, profiles=tuple(profiles)))


def loaded_text(
    text: str, registry: Registry, gates: FeatureGates | None, field: str, name: str = "the configuration"
) -> Configuration:
    """A configuration of the request; `name` is that of its field on the page. Raises `RequestError`."""
    if len(text) > MOST_TEXT:
        raise RequestError(413, f"{name} has more than {MOST_TEXT} characters.", field=field)
    try:
        loaded = load_configuration(text, source=name, registry=registry, gates=gates)
    except OperatorMistake as error:
        raise refused(error, field=field) from error
    return without_extenders(loaded.configuration)


def without_extenders(configuration: Configuration) -> Configuration:
    """A user of the page must not make this process send requests to an address of their choice."""
    return dataclasses.replace(configuration, extenders=()) if configuration.extenders else configuration
