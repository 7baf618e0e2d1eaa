"""`mooring crd generate`: what kubectl can apply, from the class that the plugin reads."""

from __future__ import annotations

import yaml
from tests.cli.conftest import Mooring, write

from mooring.framework.definitions import definition_of
from mooring.plugins.examples.node_crd_resource_fit import ClusterScopedResource

TWO_KINDS = '''
from mooring.framework import CustomResource, Objects, Plugin, ResourcePart

class PartSpec(ResourcePart):
    """What it holds.

    In two paragraphs.
    """
    size: int

class Crate(CustomResource, group="example.com", version="v1", plural="crates"):
    spec: PartSpec

class Pallet(CustomResource, group="example.com", version="v1", plural="pallets"):
    spec: PartSpec

class Loading(Plugin):
    def __init__(self, crates: Objects[Crate], pallets: Objects[Pallet]) -> None: ...
    def filter(self, pod, node, cycle): ...
'''


def test_the_definition_is_printed_as_yaml(mooring: Mooring):
    result = mooring("crd", "generate", "NodeCRDResourceFit")
    assert (result.code, result.err) == (0, "")
    assert yaml.safe_load(result.out) == definition_of(ClusterScopedResource)
    assert result.out.startswith("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n")


def test_every_custom_kind_of_a_plugin_in_a_file_is_printed(mooring: Mooring):
    result = mooring("crd", "generate", "Loading", "--plugins", write("loading.py", TWO_KINDS))
    documents = list(yaml.safe_load_all(result.out))
    assert [document["metadata"]["name"] for document in documents] == ["crates.example.com", "pallets.example.com"]
    described = documents[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["description"]
    assert described == "What it holds.\n\nIn two paragraphs."
    assert "\\n" not in result.out


def test_a_plugin_that_reads_no_custom_kind_is_reported(mooring: Mooring):
    result = mooring("crd", "generate", "ScoreByLabel")
    assert (result.code, result.out) == (2, "")
    assert "ScoreByLabel watches no custom kind" in result.err


def test_a_name_that_is_nearly_right_is_recognised(mooring: Mooring):
    result = mooring("crd", "generate", "NodeCRDResourcesFit")
    assert result.code == 2
    assert 'Did you mean "NodeCRDResourceFit"?' in result.err


def test_what_cannot_be_a_definition_is_named(mooring: Mooring):
    text = TWO_KINDS.replace("size: int", "size: int | float").replace('"example.com"', '"mine.k8s.io"', 1)
    result = mooring("crd", "generate", "Loading", "--plugins", write("wrong_loading.py", text))
    assert result.code == 2
    assert "Crate cannot be made a CustomResourceDefinition." in result.err
    assert "spec.size" in result.err
    assert "mine.k8s.io is a protected group" in result.err
