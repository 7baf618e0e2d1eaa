"""`mooring up` and `mooring cluster` with input they cannot work with: nothing starts, nothing is overwritten."""

import socket
from pathlib import Path

import pytest
from tests.cli.conftest import NOWHERE, Mooring, write

BOTH = pytest.mark.parametrize("command", ["up", "cluster"])


@BOTH
def test_a_port_in_use_is_named(mooring: Mooring, command: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = mooring(command, f"--port={port}")
    assert answer.code == 2
    assert f"127.0.0.1:{port} is in use" in answer.err
    assert "Traceback" not in answer.err
    assert not Path("mooring.kubeconfig").exists()


@BOTH
def test_a_kubeconfig_that_is_not_ours_is_left_alone(mooring: Mooring, command: str):
    write("config", NOWHERE)
    answer = mooring(command, "--write-kubeconfig", "config")
    assert answer.code == 2
    assert "config is a kubeconfig that Mooring did not write" in answer.err
    assert Path("config").read_text(encoding="utf-8") == NOWHERE


@BOTH
def test_places_where_no_kubeconfig_can_be_written(mooring: Mooring, command: str):
    for place, message in {".": "is a folder", "missing/k": "missing is no folder"}.items():
        answer = mooring(command, "--write-kubeconfig", place)
        assert answer.code == 2
        assert message in answer.err


@BOTH
def test_a_number_of_nodes_and_a_file_exclude_each_other(mooring: Mooring, command: str):
    answer = mooring(command, "--nodes=2", "--cluster=c.yaml")
    assert answer.code == 2
    assert "--nodes and --cluster exclude each other" in answer.err


@BOTH
def test_a_negative_number_of_nodes(mooring: Mooring, command: str):
    answer = mooring(command, "--nodes=-1")
    assert answer.code == 2
    assert "--nodes" in answer.err


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
    answer = mooring("up", "--cluster=c.yaml")
    assert answer.code == 2
    assert message in answer.err
    assert "Traceback" not in answer.err
    assert not Path("mooring.kubeconfig").exists()


def test_an_object_of_the_file_that_the_server_refuses_is_named_and_nothing_is_left(mooring: Mooring):
    write("c.yaml", "apiVersion: v1\nkind: Nod\nmetadata: {name: a}\n")
    answer = mooring("cluster", "--cluster=c.yaml")
    assert answer.code == 2
    assert 'c.yaml cannot be loaded: Nod "a" could not be created' in answer.err
    assert not Path("mooring.kubeconfig").exists()


DUMP = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Node, metadata: {name: Big_One, uid: a-1, resourceVersion: "7"}}
- {apiVersion: v1, kind: Pod, metadata: {name: web, uid: a-2, resourceVersion: "8"}, spec: {containers: []}}
"""


@BOTH
def test_every_wrong_object_of_a_dump_is_named(mooring: Mooring, command: str):
    answer = mooring(command, "--cluster", write("dump.yaml", DUMP))
    assert answer.code == 2
    assert "dump.yaml has 2 problems." in answer.err
    assert 'Node "Big_One"' in answer.err
    assert 'Pod "default/web"\n    Pod "web" is invalid: spec.containers: Required value' in answer.err
    assert not Path("mooring.kubeconfig").exists()


def test_a_dump_is_restored_by_an_embedded_cluster_only(mooring: Mooring):
    answer = mooring("nodes", "--kubeconfig", write("k", NOWHERE), "--cluster", write("dump.yaml", DUMP))
    assert answer.code == 2
    assert "only an embedded cluster can restore them. Use mooring up or mooring cluster" in answer.err


def test_a_configuration_with_mistakes_starts_nothing(mooring: Mooring):
    answer = mooring("up", "--config", write("s.yaml", "apiVersion: v1\nkind: Pod\n"))
    assert answer.code == 2
    assert "s.yaml" in answer.err
    assert not Path("mooring.kubeconfig").exists()


def test_a_plugin_that_does_not_import_starts_nothing(mooring: Mooring):
    answer = mooring("up", "--plugins", write("mine.py", "1 / 0\n"))
    assert answer.code == 2
    assert "mine.py:1" in answer.err
    assert not Path("mooring.kubeconfig").exists()
