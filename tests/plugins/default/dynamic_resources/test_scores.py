"""Nodes that serve preferred alternatives score higher."""

from __future__ import annotations

import pytest
from tests.plugins.default.dynamic_resources.builders import (
    World,
    a_claim,
    a_claiming_pod,
    a_slice,
    allocated,
    devices,
    first_of,
    wants,
)
from tests.plugins.verdicts import normalized

from mooring.objects.resource import ResourceClaim
from mooring.testing import a_node

GPU = "example.com/gpu"


def three_nodes(*claims: ResourceClaim, gates: dict[str, bool] | None = None) -> World:
    """One, two and three devices."""
    sizes = {"one": 1, "two": 2, "three": 3}
    return World(
        *(a_node(name) for name in sizes),
        slices=[a_slice(*devices(*(f"gpu-{at}" for at in range(size))), node=name) for name, size in sizes.items()],
        claims=claims,
        gates=gates,
    )


THREE = first_of("r", wants("three", 3), wants("two", 2), wants("one", 1))
SCORES: dict[str, tuple[list[ResourceClaim], dict[str, int]]] = {
    "the higher in the list, the better": (
        [a_claim("claim", THREE)],
        {"three": 8, "two": 7, "one": 6},
    ),
    "requests without alternatives do not count": ([a_claim("claim", wants())], {"three": 0, "two": 0, "one": 0}),
    "claims add up": (
        [a_claim("claim", first_of("r", wants("two", 2), wants("one", 1))), a_claim("plain", wants("p", 1))],
        {"three": 8, "two": 7},
    ),
    "allocated claims count with the others": (
        [
            a_claim("claim", THREE),
            a_claim(
                "given",
                first_of("q", wants("a"), wants("b")),
                allocation=allocated("x", pool="x", on=None, request="q/b"),
            ),
        ],
        {"three": 15, "two": 14, "one": 13},
    ),
    "but not alone": (
        [a_claim("given", THREE, allocation=allocated("x", pool="x", on=None, request="r/three"))],
        {"three": 0, "two": 0, "one": 0},
    ),
}


@pytest.mark.parametrize(("claims", "raw"), SCORES.values(), ids=SCORES.keys())
def test_scores(claims, raw):
    decision = three_nodes(*claims).cluster.decide(a_claiming_pod(*(claim.name for claim in claims)))
    columns = decision.columns()
    assert columns is not None
    assert dict(zip(columns.nodes, columns.raw["DynamicResources"].tolist(), strict=True)) == raw
    best = max(raw.values()) or 1
    assert normalized(decision, "DynamicResources") == {name: score * 100 // best for name, score in raw.items()}
