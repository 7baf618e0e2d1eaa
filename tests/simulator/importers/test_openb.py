"""The openb format: node lists and pod lists, whole or with five columns, and their bad rows."""

from __future__ import annotations

import lzma

import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator.importers import OpenbNode, OpenbPod, read_openb_nodes, read_openb_pods

NODES = """\
sn,cpu_milli,memory_mib,gpu,model
node-a,32000,262144,0,
node-b,96000,393216,8,G2
"""
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-a,12000,16384,1,1000,,LS,Running,0,500,3
pod-b,6000,12288,1,460,V100M16|V100M32,BE,Pending,20,80,
pod-c,1000,1024,0,0,,LS,Succeeded,30,90,30
"""


def test_a_node_list(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES)
    assert read_openb_nodes(tmp_path / "nodes.csv") == [
        OpenbNode("node-a", 32000, 262144, 0, ""),
        OpenbNode("node-b", 96000, 393216, 8, "G2"),
    ]


def test_a_pod_list_that_is_compressed(tmp_path):
    (tmp_path / "pods.csv.xz").write_bytes(lzma.compress(PODS.encode()))
    first, second, third = read_openb_pods(tmp_path / "pods.csv.xz")
    assert first == OpenbPod("pod-a", 12000, 16384, 1, 1000, "", "LS", "Running", 0.0, 500.0, 3.0)
    assert (second.models, second.total_gpu_milli, second.scheduled_time) == (("V100M16", "V100M32"), 460, None)
    assert (third.models, third.total_gpu_milli) == ((), 0)


def test_a_pod_list_with_five_columns(tmp_path):
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\npod-a,1000,2048,2,1000\n")
    assert read_openb_pods(tmp_path / "pods.csv") == [OpenbPod("pod-a", 1000, 2048, 2, 1000)]


def test_a_gpu_has_a_thousand_milli(tmp_path):
    (tmp_path / "pods.csv").write_text("name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,1,1500\nb,1,1,0,700\n")
    assert [pod.gpu_milli for pod in read_openb_pods(tmp_path / "pods.csv")] == [1000, 0]


BAD = {
    "a text for a number": ("pod-a,many,1,0,0", [('column "cpu_milli"', "must be a number of at least 0, got 'many'")]),
    "a number that is not whole": ("pod-a,1.5,1,0,0", [('column "cpu_milli"', "must be a whole number, got '1.5'")]),
    "a negative number": ("pod-a,1,-1,0,0", [('column "memory_mib"', "at least 0, got '-1'")]),
    "an empty name": (",1,1,0,0", [('column "name"', "is empty")]),
    "an empty number": ("pod-a,,1,0,0", [('column "cpu_milli"', "is empty; a number is expected")]),
    "too few columns": ("pod-a,1,1", [("the row", "has 3 columns; 5 are expected")]),
    "two mistakes": ("pod-a,x,y,0,0", [('column "cpu_milli"', "got 'x'"), ('column "memory_mib"', "got 'y'")]),
}


@pytest.mark.parametrize(("row", "expected"), BAD.values(), ids=BAD.keys())
def test_a_bad_row_names_line_and_column(tmp_path, row, expected):
    (tmp_path / "pods.csv").write_text(f"name,cpu_milli,memory_mib,num_gpu,gpu_milli\ngood,1,1,0,0\n{row}\n")
    with pytest.raises(OperatorMistake) as raised:
        read_openb_pods(tmp_path / "pods.csv")
    assert "pods.csv has" in raised.value.summary
    assert [(each.path, each.line) for each in raised.value.problems] == [(where, 3) for where, _ in expected]
    for problem, (_, why) in zip(raised.value.problems, expected, strict=True):
        assert why in problem.message


def test_missing_columns_are_named(tmp_path):
    (tmp_path / "pods.csv").write_text("name,cpu\na,1\n")
    with pytest.raises(OperatorMistake) as raised:
        read_openb_pods(tmp_path / "pods.csv")
    assert len(raised.value.problems) == 4
    assert "(found: name, cpu)" in str(raised.value)


UNREADABLE = {
    "no file": (None, "No such file"),
    "no compressed file": (b"name,cpu_milli", "not compressed as the end of its name promises"),
    "cut short": (lzma.compress(PODS.encode())[:-20], "cut short"),
    "no text": (lzma.compress(b"\xff\xfe\x00"), "no UTF-8 text"),
}


@pytest.mark.parametrize(("content", "why"), UNREADABLE.values(), ids=UNREADABLE.keys())
def test_an_unreadable_file_is_named(tmp_path, content, why):
    path = tmp_path / "pods.csv.xz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(OperatorMistake, match=why):
        read_openb_pods(path)
