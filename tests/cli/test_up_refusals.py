"""`mooring up` and `mooring cluster` with input they cannot work with: nothing starts, nothing is overwritten."""

import socket
import subprocess
from pathlib import Path

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write

from mooring.cli.cluster import how_to_point_kubectl

BOTH = pytest.mark.parametrize("command", ["up", "cluster"])


@BOTH
def test_a_port_in_use_is_named(mooring: Mooring, command: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = mooring(command, f"--port={port}")
    assert result.code == 2
    assert f"127.0.0.1:{port} is in use" in result.err
    assert "Traceback" not in result.err
    assert not Path("mooring.kubeconfig").exists()


@BOTH
def test_a_kubeconfig_that_is_not_ours_is_left_alone(mooring: Mooring, command: str):
    write("config", NOWHERE)
    result = mooring(command, "--write-kubeconfig", "config")
    assert result.code == 2
    assert "config is a file that Mooring did not write" in result.err
    assert Path("config").read_text(encoding="utf-8") == NOWHERE


@BOTH
def test_places_where_no_kubeconfig_can_be_written(mooring: Mooring, command: str):
    for place, message in {".": "is a folder", "missing/k": "missing is no folder"}.items():
        result = mooring(command, "--write-kubeconfig", place)
        assert result.code == 2
        assert message in result.err


@BOTH
def test_a_number_of_nodes_and_a_file_exclude_each_other(mooring: Mooring, command: str):
    result = mooring(command, "--nodes=2", "--cluster=c.yaml")
    assert result.code == 2
    assert "--nodes and --cluster exclude each other" in result.err


@BOTH
def test_a_negative_number_of_nodes(mooring: Mooring, command: str):
    result = mooring(command, "--nodes=-1")
    assert result.code == 2
    assert "--nodes" in result.err


BROKEN = {
    "no file": (None, "The cluster file c.yaml cannot be read"),
    "no YAML": ("a: [\n", "c.yaml"),
    "no object": ("just words\n", "c.yaml"),
    "no kind": ("apiVersion: v1\nmetadata: {name: a}\n", "kind"),
    "a node with an impossible quantity": (
        "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {capacity: {cpu: lots}}\n",
        "lots",
    ),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_cluster_file_is_found_before_anything_starts(mooring: Mooring, text: str | None, message: str):
    if text is not None:
        write("c.yaml", text)
    result = mooring("up", "--cluster=c.yaml")
    assert result.code == 2
    assert message in result.err
    assert "Traceback" not in result.err
    assert not Path("mooring.kubeconfig").exists()


def test_an_object_of_the_file_that_the_server_refuses_is_named_and_nothing_is_left(mooring: Mooring):
    write("c.yaml", "apiVersion: v1\nkind: Nod\nmetadata: {name: a}\n")
    result = mooring("cluster", "--cluster=c.yaml")
    assert result.code == 2
    assert 'Nod "a" (line 1)\n    the embedded API server has no kind Nod in v1;' in result.err
    assert not Path("mooring.kubeconfig").exists()


MANY_MISTAKES = """\
apiVersion: v1
kind: Node
metadata: {name: off_X}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop}
spec:
  nodename: a
  containers: [{name: app, imag: nginx}]
---
apiVersion: mooring.dev/v1alpha1
kind: SimulatedNodes
count: many
---
apiVersion: cilium.io/v2
kind: CiliumNode
metadata: {name: one}
---
apiVersion: v1
kind: Node
metadata: {name: Big_One, uid: a-1}
"""


@BOTH
def test_every_wrong_object_of_a_file_is_named_with_its_line(mooring: Mooring, command: str):
    result = mooring(command, "--cluster", write("c.yaml", MANY_MISTAKES))
    assert result.code == 2
    expected = [
        "c.yaml has 7 problems.",
        '  Node "off_X" (line 3)\n    Node "off_X" is invalid: metadata.name:',
        '  Pod "shop/web" (line 9)\n    unknown field "spec.nodename"',
        '  Pod "shop/web" (line 10)\n    unknown field "spec.containers[0].imag"',
        '  Pod "shop/web" (line 10)\n    Pod "web" is invalid: spec.containers[0].image: Required value',
        "  document 3: count (line 14)\n",
        '  CiliumNode "one" (line 16)\n    the embedded API server has no kind CiliumNode in cilium.io/v2; put its '
        "CustomResourceDefinition into the file, or leave the object out",
        '  Node "Big_One" (line 22)\n',
    ]
    places = [result.err.find(each) for each in expected]
    assert -1 not in places, result.err
    assert places == sorted(places)
    assert "Sync failed" not in result.err
    assert not Path("mooring.kubeconfig").exists()


def test_wrong_objects_of_a_json_file_have_lines_too(mooring: Mooring):
    items = ",\n".join(f'{{"apiVersion": "v1", "kind": "Node", "metadata": {{"name": "{name}"}}}}' for name in "aB_")
    result = mooring("cluster", "--cluster", write("c.json", f'{{"kind": "List", "items": [\n{items}\n]}}\n'))
    assert result.code == 2
    assert "c.json has 2 problems." in result.err
    assert 'Node "B" (line 3)' in result.err
    assert 'Node "_" (line 4)' in result.err


DUMP = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: Big_One, uid: a-1, resourceVersion: "7"}}
- {apiVersion: v1, kind: Pod, metadata: {name: web, uid: a-2, resourceVersion: "8"}, spec: {containers: []}}
"""


@BOTH
def test_every_wrong_object_of_a_dump_is_named(mooring: Mooring, command: str):
    result = mooring(command, "--cluster", write("dump.yaml", DUMP))
    assert result.code == 2
    assert "dump.yaml has 2 problems." in result.err
    assert 'Node "Big_One"' in result.err
    assert 'Pod "default/web" (line 5)\n    spec.containers: Required value' in result.err
    assert not Path("mooring.kubeconfig").exists()


def test_a_dump_is_restored_by_an_embedded_cluster_only(mooring: Mooring):
    result = mooring("nodes", "--kubeconfig", write("k", NOWHERE), "--cluster", write("dump.yaml", DUMP))
    assert result.code == 2
    assert "only an embedded cluster can restore them. Use mooring up or mooring cluster" in result.err


def test_a_configuration_with_mistakes_starts_nothing(mooring: Mooring):
    result = mooring("up", "--config", write("s.yaml", "apiVersion: v1\nkind: Pod\n"))
    assert result.code == 2
    assert "s.yaml" in result.err
    assert not Path("mooring.kubeconfig").exists()


def test_a_plugin_that_does_not_import_starts_nothing(mooring: Mooring):
    result = mooring("up", "--plugins", write("mine.py", "1 / 0\n"))
    assert result.code == 2
    assert "mine.py:1" in result.err
    assert not Path("mooring.kubeconfig").exists()


def test_the_line_that_points_kubectl_can_be_pasted(tmp_path: Path):
    kubeconfig = tmp_path / "my dir" / "mooring.kubeconfig"
    line = how_to_point_kubectl(kubeconfig).partition("kubectl at it:")[2]
    done = subprocess.run(
        ["sh", "-c", f'{line} && printf %s "$KUBECONFIG"'], capture_output=True, text=True, check=True
    )
    assert done.stdout == str(kubeconfig)
