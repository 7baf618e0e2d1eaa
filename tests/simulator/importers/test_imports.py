"""Published formats become rows of our schema and nodes: small files of each, and what is wrong in them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mooring.base.errors import OperatorMistake
from mooring.objects.quantity import exact
from mooring.simulator import Cluster
from mooring.simulator.importers import ImportedTrace, read
from mooring.simulator.importers.azure_packing import TABLES
from mooring.simulator.trace_rows import TraceRow

GPU, GPU_MILLI = "nvidia.com/gpu", "mooring.dev/gpu-milli"


def lines(folder: Path, **files: str) -> list[Path]:
    """Files of these names and texts."""
    for name, text in files.items():
        (folder / f"{name}.csv").write_text(text)
    return [folder / f"{name}.csv" for name in files]


def openb(folder: Path) -> ImportedTrace:
    columns = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time"
    pods = f"""\
{columns},scheduled_time
pod-a,12000,16384,1,1000,,LS,Running,100,500,103
pod-b,6500,12288,1,460,V100M16|V100M32,BE,Pending,120,180,
pod-c,1000,1024,0,0,T4,,Succeeded,130,190,130
"""
    nodes = """\
sn,cpu_milli,memory_mib,gpu,model
node-a,32000,262144,0,
node-b,96000,393216,8,G2
node-c,96000,393216,8,G2
"""
    return read("openb", lines(folder, openb_node_list=nodes, openb_pod_list=pods))


def pai(folder: Path, **more: str) -> ImportedTrace:
    files = {
        "pai_job_table": "job1,id1,u1,Terminated,1000.0,1400.0\njob2,id2,u2,Running,1010.0,\n",
        "pai_task_table": (
            "job1,ps,1.0,Terminated,1020.0,1400.0,600.0,29.296875,,\n"
            "job1,worker,2.0,Terminated,1030.0,1400.0,400.0,10.0,50.0,T4\n"
            "job2,tensorflow,1.0,Running,1040.0,,150.0,1.0,200.0,V100\n"
            "job3,late,1.0,Waiting,,,100.0,1.0,,\n"
        ),
        "pai_group_tag_table": "id1,u1,,g,\nid2,u2,V100,g,nmt\n",
        "pai_machine_spec": "m1,T4,96,512,2\nm2,CPU,64,256,0\n",
        **more,
    }
    lines(folder, **files)
    (folder / "pai_task_table.header").write_text("job_name,…")
    (folder / "pai_task_table.tar.gz").write_text("not unpacked")
    return read("pai2020", folder)


def philly_job(**more: Any) -> dict[str, Any]:
    return {
        "status": "Pass",
        "vc": "ee9e8c",
        "jobid": "application_15_1",
        "user": "ce2f4c",
        "submitted_time": "2017-10-07 01:00:00",
        "attempts": [],
        **more,
    }


def attempt(start: str | None, end: str | None, *gpus: int) -> dict[str, Any]:
    detail = [{"ip": f"m{index}", "gpus": [f"gpu{gpu}" for gpu in range(count)]} for index, count in enumerate(gpus)]
    return {"start_time": start, "end_time": end, "detail": detail}


def philly(folder: Path) -> ImportedTrace:
    jobs = [
        philly_job(
            attempts=[
                attempt("2017-10-07 01:00:10", "2017-10-07 01:00:20", 4),
                attempt("2017-10-07 01:01:00", "2017-10-07 01:02:00", 8, 2),
            ]
        ),
        philly_job(jobid="application_15_2", submitted_time="2017-10-07 00:59:00"),
        philly_job(jobid="application_15_3", vc="", attempts=[attempt("2017-10-07 01:01:00", None, 1)]),
    ]
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    (folder / "cluster_machine_list").write_text("machineId, number of GPUs, single GPU mem\nm1,8, 24GB\nm2,2, 12GB\n")
    return read("philly", [folder / "cluster_job_log", folder / "cluster_machine_list"])


HELIOS = "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue\n"


def helios(folder: Path) -> ImportedTrace:
    log = f"""{HELIOS}\
7,uA,vcX,16,9,2,COMPLETED,2020-06-09 18:41:01,2020-06-09 18:42:01,2020-06-09 18:43:01,60,60
8,uB,vcY,0,4,1,FAILED,2020-06-09 18:40:01,2020-06-09 18:40:01,2020-06-09 18:40:31,30,0
9,uB,vcY,1,4,1,CANCELLED,2020-06-09 18:45:01,None,2020-06-09 18:46:01,0,60
"""
    gpus = "date,vcX,vcY,total\n2020-09-01,16,0,16\n2020-09-02,8,12,20\n"
    lines(folder, cluster_log=log, cluster_gpu_number=gpus)
    return read("helios", str(folder))


def azure_database(folder: Path, vms: list[tuple[Any, ...]], types: list[tuple[Any, ...]]) -> Path:
    path = folder / "packing.sqlite"
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE {table} ({', '.join(columns)})")
        database.executemany("INSERT INTO vm VALUES (?,?,?,?,?,?)", vms)
        database.executemany("INSERT INTO vmType VALUES (?,?,?,?,?,?,?)", types)
    return path


TYPES: list[tuple[Any, ...]] = [
    (1, 16, 0.5, 0.25, None, 0.125, 1 / 3),
    (2, 16, 1.0, 1.0, 0, 0, 0),
    (3, 17, 0.1, 0.1, 0, 0, 0),
]


def azure(folder: Path) -> ImportedTrace:
    vms = [(10, 5, 1, 0, -1.0, 0.5), (11, 5, 2, 1, 0.25, None), (12, 6, 3, 0, 1.0, 2.0)]
    return read("azure-packing", azure_database(folder, vms, TYPES))


IMPORTED: dict[str, tuple[Callable[[Path], ImportedTrace], list[TraceRow], dict[str, dict[str, str]], list[str]]] = {
    "openb": (
        openb,
        [
            TraceRow(
                0, 397, "pod-a", labels={"qos": "LS"}, requests={"cpu": "12", "memory": "16384Mi", GPU_MILLI: "1000"}
            ),
            TraceRow(
                20,
                60,
                "pod-b",
                labels={"qos": "BE"},
                node_selector={"gpu-model": ("V100M16", "V100M32")},
                requests={"cpu": "6500m", "memory": "12288Mi", GPU_MILLI: "460"},
            ),
            TraceRow(30, 60, "pod-c", requests={"cpu": "1", "memory": "1024Mi"}),
        ],
        {
            "node-a": {"cpu": "32", "memory": "262144Mi"},
            "node-b": {"cpu": "96", "memory": "393216Mi", GPU_MILLI: "8000"},
        },
        ["1 pods were deleted before they were scheduled"],
    ),
    "pai2020": (
        pai,
        [
            TraceRow(
                0, 380, "job1-ps-0", labels={"user": "u1"}, owner="job1-ps", requests={"cpu": "6", "memory": "30000Mi"}
            ),
            *(
                TraceRow(
                    0,
                    370,
                    f"job1-worker-{index}",
                    labels={"user": "u1"},
                    owner="job1-worker",
                    requests={"cpu": "4", "memory": "10240Mi", GPU_MILLI: "500"},
                )
                for index in range(2)
            ),
            TraceRow(
                10,
                None,
                "job2-tensorflow-0",
                labels={"user": "u2"},
                owner="job2-tensorflow",
                node_selector={"gpu-model": ("V100",)},
                requests={"cpu": "1500m", "memory": "1024Mi", GPU_MILLI: "2000"},
            ),
        ],
        {"m1": {"cpu": "96", "memory": "512Gi", GPU_MILLI: "2000"}, "m2": {"cpu": "64", "memory": "256Gi"}},
        ["1 tasks or instances have no time at which they were launched"],
    ),
    "philly": (
        philly,
        [
            *(
                TraceRow(
                    60,
                    70,
                    f"application-15-1-{index}",
                    labels={"vc": "ee9e8c", "user": "ce2f4c"},
                    owner="application-15-1",
                    requests={GPU: gpus},
                )
                for index, gpus in enumerate(["8", "2"])
            ),
            TraceRow(
                60, None, "application-15-3-0", labels={"user": "ce2f4c"}, owner="application-15-3", requests={GPU: "1"}
            ),
        ],
        {"m1": {GPU: "8"}, "m2": {GPU: "2"}},
        ["1 jobs were never started"],
    ),
    "helios": (
        helios,
        [
            *(
                TraceRow(
                    60,
                    60,
                    f"job-7-{index}",
                    labels={"vc": "vcX", "user": "uA"},
                    owner="job-7",
                    node_selector={"vc": ("vcX",)},
                    requests={"cpu": cpus, GPU: "8"},
                )
                for index, cpus in enumerate(["5", "4"])
            ),
            TraceRow(
                0,
                30,
                "job-8-0",
                labels={"vc": "vcY", "user": "uB"},
                owner="job-8",
                node_selector={"vc": ("vcY",)},
                requests={"cpu": "4"},
            ),
        ],
        {"node-1": {"cpu": "1000", GPU: "8"}, "node-4": {"cpu": "1000", GPU: "8"}},
        ["1 jobs have no time of submission or were never started"],
    ),
    "azure-packing": (
        azure,
        [
            TraceRow(
                0,
                43200,
                "vm-10",
                priority=100,
                owner="tenant-5",
                requests={
                    "cpu": "500000m",
                    "memory": "262144Mi",
                    "ephemeral-storage": "131072Mi",
                    "mooring.dev/nic": "333333",
                },
            ),
            TraceRow(
                21600, None, "vm-11", priority=0, owner="tenant-5", requests={"cpu": "1000000m", "memory": "1048576Mi"}
            ),
        ],
        {"machine-16-1": {"cpu": "1000000m", "memory": "1048576Mi"}},
        ["1 VMs cannot run on that kind of machine"],
    ),
}


@pytest.mark.parametrize(("imported", "rows", "nodes", "notes"), IMPORTED.values(), ids=IMPORTED.keys())
def test_a_format_becomes_rows_and_nodes(tmp_path, imported, rows, nodes, notes):
    trace = imported(tmp_path)
    assert list(trace.rows) == rows
    assert {resource for row in rows for resource in row.requests} <= set(trace.resources)
    found = {node.name: node.allocatable for node in trace.nodes}
    assert all(nodes[name].items() <= found[name].items() for name in nodes)
    for note in notes:
        assert any(note in each for each in trace.notes)


@pytest.mark.parametrize("imported", [each[0] for each in IMPORTED.values()], ids=IMPORTED.keys())
def test_its_cluster_file_has_the_nodes(tmp_path, imported):
    trace = imported(tmp_path)
    path = tmp_path / "cluster.yaml"
    path.write_text(trace.cluster_file())
    read_back = {node.name: node for node in Cluster.read(path).nodes}
    made = {node.name: node for node in trace.cluster().nodes}
    assert set(read_back) == set(made) == {node.name for node in trace.nodes}
    for node in trace.nodes:
        assert made[node.name].labels == read_back[node.name].labels
        assert node.labels.items() <= read_back[node.name].labels.items()
        allocatable = read_back[node.name].status.allocatable
        for resource, amount in {**node.allocatable, "pods": "1000"}.items():
            assert exact(allocatable[resource]) == exact(amount)


def test_instances_have_run_times_of_their_own(tmp_path):
    instances = (
        "job1,worker,i1,w1,id1,Terminated,1030.0,1100.0,m1\n"
        "job1,worker,i2,w2,id1,Terminated,1030.0,1200.0,m1\n"
        "gone,worker,i3,w3,id9,Terminated,1030.0,1200.0,m1\n"
    )
    trace = pai(tmp_path, pai_instance_table=instances)
    rows = {row.name: row.duration for row in trace.rows}
    assert rows == {"job1-worker-0": 70, "job1-worker-1": 170, "job1-ps-0": 380, "job2-tensorflow-0": None}
    assert any("1 instances have no task" in note for note in trace.notes)


def test_without_jobs_pods_arrive_when_their_task_was_launched(tmp_path):
    [tasks] = lines(tmp_path, pai_task_table="j,t,1,Terminated,50,60,100,1,,\nk,t,1,Terminated,70,90,100,1,,\n")
    trace = read("pai2020", tasks)
    assert [row.arrival for row in trace.rows] == [0, 20]
    assert any("Without pai_job_table" in note for note in trace.notes)


# What is wrong


def bad_helios(folder: Path) -> ImportedTrace:
    row = "7,uA,vcX,many,9,2,COMPLETED,yesterday,2020-06-09 18:42:01,2020-06-09 18:43:01,60,60\n"
    return read("helios", lines(folder, cluster_log=HELIOS + row))


def bad_pai(folder: Path) -> ImportedTrace:
    return read("pai2020", lines(folder, pai_task_table="j,t,1.5,Terminated,50,60,x,1,,\nk,t\n"))


def bad_philly(folder: Path) -> ImportedTrace:
    jobs = [
        philly_job(submitted_time="soon"),
        {"vc": "a"},
        philly_job(attempts=[attempt("noon", None, 1)]),
        philly_job(user=3),
    ]
    (folder / "cluster_job_log").write_text(json.dumps(jobs))
    return read("philly", folder)


def bad_azure(folder: Path) -> ImportedTrace:
    vms = [(10, 5, 1, 2, "soon", "late")]
    return read("azure-packing", azure_database(folder, vms, TYPES))


BAD = {
    "pai2020": (bad_pai, ['column "inst_num" (line 1)', 'column "plan_cpu" (line 1)', "the row (line 2)"]),
    "philly": (
        bad_philly,
        [
            'job 1, field "submitted_time"',
            "job 2",
            'job 3, field "attempts[0].start_time"',
            'job 4, field "user"',
        ],
    ),
    "helios": (bad_helios, ['column "submit_time" (line 2)']),
    "azure-packing": (
        bad_azure,
        [f'table "vm", row 1, column "{name}"' for name in ("priority", "starttime", "endtime")],
    ),
}


@pytest.mark.parametrize(("imported", "places"), BAD.values(), ids=BAD.keys())
def test_bad_rows_are_named(tmp_path, imported, places):
    with pytest.raises(OperatorMistake) as raised:
        list(imported(tmp_path).rows)
    assert [str(problem).splitlines()[0].strip() for problem in raised.value.problems] == places


WRONG_FILES: dict[str, tuple[str, dict[str, str], str]] = {
    "no such format": ("openbb", {"openb_pod_list": ""}, r'"openbb" is no format of a trace: .* Did you mean "openb"'),
    "a file of another trace": ("openb", {"jobs": ""}, r"jobs\.csv is no file of this trace"),
    "two files of one role": (
        "openb",
        {"openb_pod_list_a": "", "openb_pod_list_b": ""},
        "are both a pod_list; name one of them",
    ),
    "no pods": ("openb", {"openb_node_list": ""}, "no file whose name contains pod_list"),
    "a database that is none": ("azure-packing", {"x": "text that is long enough to be no database"}, "not a database"),
    "a database without tables": ("azure-packing", {"x": ""}, 'column "vmId"'),
}


@pytest.mark.parametrize(("format", "files", "why"), WRONG_FILES.values(), ids=WRONG_FILES.keys())
def test_wrong_files_are_named(tmp_path, format, files, why):
    with pytest.raises(OperatorMistake, match=why):
        list(read(format, lines(tmp_path, **files)).rows)


def test_an_archive_must_be_unpacked(tmp_path):
    (tmp_path / "pai_task_table.tar.gz").write_text("")
    with pytest.raises(OperatorMistake, match="archives must be unpacked"):
        read("pai2020", tmp_path / "pai_task_table.tar.gz")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(OperatorMistake, match=r"There is no file .*gone\.csv"):
        read("openb", tmp_path / "gone.csv")
