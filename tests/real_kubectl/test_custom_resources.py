"""kubectl and kinds of one's own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.real_kubectl.conftest import Kubectl, Up

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat, shortNames: [bt]}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Length, type: integer, jsonPath: .spec.length}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [length]
            properties: {length: {type: integer, minimum: 1}, name: {type: string}}
"""
DINGHY = "{apiVersion: example.com/v1, kind: Boat, metadata: {name: dinghy}, spec: {length: 3}}"


@pytest.fixture
def harbour(up: Up, shop: Kubectl) -> Iterator[Kubectl]:
    """A namespace on a cluster that knows boats."""
    up.run("apply", "-f", "-", input=DEFINITION)
    up.run("wait", "--for=condition=Established", "crd/boats.example.com", "--timeout=60s")
    yield shop
    up.run("delete", "crd", "boats.example.com", "--timeout=60s")


def test_objects_of_a_kind_of_ones_own(harbour: Kubectl):
    assert harbour.out("apply", "-f", "-", input=DINGHY) == "boat.example.com/dinghy created\n"
    assert harbour.out("apply", "-f", "-", input=DINGHY) == "boat.example.com/dinghy unchanged\n"
    assert harbour.rows("get", "bt") == [{"NAME": "dinghy", "LENGTH": "3"}]
    longer = DINGHY.replace("3", "4")
    assert harbour.out("apply", "-f", "-", input=longer) == "boat.example.com/dinghy configured\n"
    assert harbour.json("get", "boat", "dinghy")["spec"] == {"length": 4}
    assert "Length:  4" in harbour.out("describe", "boat", "dinghy")
    harbour.run("delete", "boat", "dinghy")
    assert "NotFound" in harbour.refusal("get", "boat", "dinghy")


def test_a_definition_and_an_object_in_one_file_take_two_goes(up: Up, shop: Kubectl):
    # A group of its own: kubectl remembers for minutes which groups there were.
    both = f"{DEFINITION}\n---\n{DINGHY}\n".replace("example.com", "lake.example.com")
    first = shop.run("apply", "-f", "-", input=both, check=False)
    assert "customresourcedefinition.apiextensions.k8s.io/boats.lake.example.com created" in first.stdout
    assert "ensure CRDs are installed first" in first.stderr
    up.run("wait", "--for=condition=Established", "crd/boats.lake.example.com", "--timeout=60s")
    assert "boat.lake.example.com/dinghy created" in shop.out("apply", "-f", "-", input=both)
    up.run("delete", "crd", "boats.lake.example.com", "--timeout=60s")


def test_what_the_schema_refuses_is_named(harbour: Kubectl):
    too_short = harbour.refusal("create", "-f", "-", input=DINGHY.replace("3", "0"))
    assert "spec.length in body should be greater than or equal to 1" in too_short
    assert "spec.length: Required value" in harbour.refusal("create", "-f", "-", input=DINGHY.replace("length: 3", ""))
    assert 'unknown field "spec.width"' in harbour.refusal(
        "create", "-f", "-", input=DINGHY.replace("3", "3, width: 1")
    )


def test_a_kind_is_discovered_and_forgotten(up: Up, harbour: Kubectl):
    names = [row["NAME"] for row in up.rows("api-resources", "--api-group=example.com")]
    assert names == ["boats"]
