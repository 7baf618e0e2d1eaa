"""What `mooring simulate` and `mooring compare` write beside their tables, and what they do where they cannot."""

from __future__ import annotations

import csv
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Mooring, write
from tests.cli.programs import clean_environment

from mooring.cli.interruption import INTERRUPTED
from mooring.cli.simulation_progress import SimulationProgress

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {multiPoint: {enabled: [{name: NAME}]}}
"""
PACKING = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
"""
PLUGINS = '''
import os
import signal
import time

from mooring.framework import Http, Plugin


class Raises(Plugin):
    """Fails on large pods."""

    def filter(self, pod, node, cycle):
        if pod.request("cpu") > 1000:
            raise KeyError("zone")


class Sleeps(Plugin):
    """Never returns on large pods."""

    def filter(self, pod, node, cycle):
        while pod.request("cpu") > 1000:
            time.sleep(0.01)


class Fetches(Plugin):
    """Reads outside data."""

    def __init__(self, http: Http):
        self._http = http

    def score(self, pod, node, cycle):
        return 1


class Interrupts(Plugin):
    """Ctrl-C at the third pod."""

    def pre_filter(self, pod, cycle):
        if pod.name == "pod-3":
            os.kill(os.getpid(), signal.SIGINT)
'''


@pytest.fixture
def trace() -> str:
    return write("trace.csv", "arrival,duration,cpu\n0,100,1\n1,50,1\n10,,1\n20,,2\n")


def with_plugin(name: str) -> list[str]:
    write("plugins.py", PLUGINS)
    return ["--plugins=plugins.py", f"--config={write('mine.yaml', CONFIGURATION.replace('NAME', name))}"]


# Files


def test_tables_are_written_by_the_end_of_their_names(mooring: Mooring, trace: str):
    polars = pytest.importorskip("polars")
    first, second = (
        mooring("simulate", f"--workload={trace}", f"--pods=pods{end}", f"--timeline=time{end}")
        for end in (".csv", ".parquet")
    )
    assert (first.code, second.code) == (0, 0)
    rows = list(csv.DictReader(Path("pods.csv").read_text().splitlines()))
    frame = polars.read_parquet("pods.parquet")
    assert [row["name"] for row in rows] == frame["name"].to_list() == ["pod-1", "pod-2", "pod-3", "pod-4"]
    assert frame["waited"].to_list() == [float(row["waited"]) for row in rows]
    timeline = polars.read_parquet("time.parquet")
    assert Path("time.csv").read_text().splitlines()[0].split(",") == timeline.columns
    assert timeline["at"].to_list() == [0.0, 1.0, 10.0, 20.0, 51.0, 100.0]


def test_a_report_is_one_page_that_needs_nothing_else(mooring: Mooring, trace: str):
    write("packing.yaml", PACKING)
    result = mooring("compare", "default", "packing.yaml", "--nodes=2", f"--workload={trace}", "--html=report.html")
    assert result.code == 0
    page = Path("report.html").read_text()
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")
    assert re.findall(r"""(?:src|href)=|url\(|@import|<script|<link""", page) == []
    assert set(re.findall("https?://[^\"'< ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "prefers-color-scheme:dark" in page
    # Where a text were not escaped, it would load nothing, run nothing and send nothing.
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)
    assert policy is not None
    assert page.index(policy[0]) < page.index("<title>")
    assert policy[1].split("; ")[:2] == ["default-src 'none'", "style-src 'unsafe-inline'"]
    assert "packing.yaml against default" in page
    assert "NodeResourcesFit" in page


def test_the_same_input_has_the_same_bytes(mooring: Mooring, trace: str):
    pytest.importorskip("polars")
    names = ("pods.csv", "time.csv", "pods.parquet", "report.html")

    def once(folder: str) -> list[bytes]:
        Path(folder).mkdir()
        files = [f"{folder}/{name}" for name in names]
        options = [f"{option}={file}" for option, file in zip(("--pods", "--timeline"), files, strict=False)]
        assert mooring("simulate", f"--workload={trace}", *options, f"--html={files[3]}").code == 0
        assert mooring("simulate", f"--workload={trace}", f"--pods={files[2]}").code == 0
        return [Path(file).read_bytes() for file in files]

    assert once("one") == once("two")


MISTAKES = {
    "another format": ("--pods=pods.xlsx", "must end in .csv or .parquet"),
    "a folder that is not there": ("--timeline=missing/t.csv", "the folder missing of missing/t.csv does not exist"),
    "a folder": ("--html=.", ". is a folder"),
}


@pytest.mark.parametrize(("option", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_files_that_cannot_be_written_are_reported_before_the_run(
    mooring: Mooring, trace: str, option: str, message: str
):
    result = mooring("simulate", f"--workload={trace}", option)
    assert (result.code, result.out) == (2, "")
    assert message in result.err


@pytest.mark.parametrize("option", ["--pods=pods.csv", "--pods=pods.parquet", "--timeline=t.csv", "--html=r.html"])
def test_a_full_disk_leaves_what_was_there_and_prints_the_figures(
    mooring: Mooring, trace: str, option: str, monkeypatch: pytest.MonkeyPatch
):
    """fsync is where a full disk shows at the latest."""
    path = Path(option.partition("=")[2])
    if path.suffix == ".parquet":
        pytest.importorskip("polars")
    path.write_text("of yesterday")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mooring.base.files.os.fsync", full)
    result = mooring("simulate", f"--workload={trace}", option, "--force")
    assert result.code == 2
    assert f"{path} cannot be written: No space left on device." in result.err
    assert "waited p50" in result.out
    assert path.read_text() == "of yesterday"
    assert [each.name for each in Path().iterdir() if each.name.startswith(".mooring")] == []


# Plugins that fail


def test_a_plugin_that_raises_is_named_and_its_pods_stay_pending(mooring: Mooring, trace: str):
    result = mooring("simulate", f"--workload={trace}", *with_plugin("Raises"))
    assert result.code == 0
    assert re.match(r"""mine.yaml: plugin Raises failed \d+ times at Filter\. running "Raises" filter""", result.out)
    assert "1     running \"Raises\" filter plugin: KeyError: 'zone'" in result.out
    assert "Error scheduling pod" not in result.err  # not a line for each attempt
    assert "Error scheduling pod" in mooring("simulate", f"--workload={trace}", "-v=1", *with_plugin("Raises")).err


def test_a_plugin_that_blocks_is_interrupted_and_named(mooring: Mooring, trace: str):
    result = mooring("simulate", f"--workload={trace}", "--attempt-timeout=1ms", *with_plugin("Sleeps"))
    assert result.code == 0
    assert "plugin Sleeps failed" in result.out
    assert "exceeded the time budget of 1ms for one attempt" in result.out


def test_a_plugin_that_fetches_cannot_be_simulated(mooring: Mooring, trace: str):
    result = mooring("simulate", f"--workload={trace}", *with_plugin("Fetches"))
    assert result.code == 2
    assert "Fetches (plugins.py)" in result.err
    assert "takes the Http service" in result.err


def test_where_nothing_fits_the_first_line_explains_it(mooring: Mooring):
    write("large.csv", "arrival,cpu\n0,64\n5,64\n")
    result = mooring("simulate", "--nodes=2", "--workload=large.csv")
    first = result.out.splitlines()[0]
    assert first.startswith("default: no pod was bound. 2 of 2 pods: 0/2 nodes are available: 2 Insufficient cpu.")


def test_ctrl_c_keeps_what_was_computed(trace: str, home: Path):
    """As a user starts it: in a process of its own, which the plugin interrupts at the third pod."""
    command = [sys.executable, "-m", "mooring", "simulate", f"--workload={trace}", "--pods=pods.csv"]
    command += [*with_plugin("Interrupts"), "--html=report.html"]
    ended = subprocess.run(
        command,
        env=clean_environment(home),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell ignores it in the background
    )
    assert ended.returncode == INTERRUPTED
    assert ended.stdout.startswith("mine.yaml was interrupted after 10.0 s of simulated time: what follows is a part.")
    assert [row["name"] for row in csv.DictReader(Path("pods.csv").read_text().splitlines())] == [
        "pod-1",
        "pod-2",
        "pod-3",
    ]
    assert "was interrupted" in Path("report.html").read_text()


# Compare

CLUSTER = """
apiVersion: v1
kind: Node
metadata: {name: NAME}
status: {allocatable: {cpu: "4", memory: 16Gi, pods: "110"}, capacity: {cpu: "4", memory: 16Gi, pods: "110"}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {nodeName: NODE, containers: [{name: main, image: i, resources: {requests: {cpu: "1"}}}]}
"""


def a_cluster(*pods: str) -> str:
    nodes = [CLUSTER.replace("NAME", name) for name in ("a", "b")]
    placed = [POD.replace("NAME", pod).replace("NODE", node) for pod, node in zip(pods, "ab", strict=False)]
    return write("cluster.yaml", "---".join([*nodes, *placed]))


def test_compare_reschedules_the_pods_of_a_cluster(mooring: Mooring):
    write("packing.yaml", PACKING)
    cluster = a_cluster("one", "two")
    result = mooring("compare", "default", "packing.yaml", f"--cluster={cluster}", "--reschedule")
    assert result.code == 0, result.err
    assert "On another node with packing.yaml than with default: 1 of 2 pods" in result.out
    assert "score NodeResourcesFit" in result.out
    assert "default/two" in result.out


COMPARE_MISTAKES = {
    "one configuration": (["default"], "name two configurations or more"),
    "the same twice": (["default", "default"], "named twice"),
    "no pods": (["default", "packing.yaml", "--cluster=cluster.yaml"], "no pods to schedule"),
    "a file that is not there": (["default", "missing.yaml", "--cluster=cluster.yaml", "--reschedule"], "missing.yaml"),
}


@pytest.mark.parametrize(("arguments", "message"), COMPARE_MISTAKES.values(), ids=COMPARE_MISTAKES.keys())
def test_mistakes_of_a_comparison_are_explained(mooring: Mooring, arguments: list[str], message: str):
    write("packing.yaml", PACKING)
    a_cluster("one", "two")
    result = mooring("compare", *arguments)
    assert result.code == 2
    assert message in result.err


# Progress


def shown(capfd: pytest.CaptureFixture[str], *, is_terminal: bool) -> str:
    times = iter([0.0, 1.5, 1.55, 3.0])
    progress = SimulationProgress("now", 200, is_terminal=is_terminal, now=lambda: next(times), cpu=lambda: 2.0)
    for tried in (1, 50, 51, 200):
        progress(tried, tried * 60.0)
    progress.end()
    return capfd.readouterr().err


def test_progress_is_a_line_a_second_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]):
    assert shown(capfd, is_terminal=False).splitlines() == [
        "now: 50/200 pods, 33/s, 4 s left (50.0 min simulated)",
        "now: 200/200 pods, 67/s, retrying pods (3.3 h simulated)",
        "now: simulated in 0.0 s of CPU time",
    ]


def test_progress_is_a_bar_on_a_terminal(capfd: pytest.CaptureFixture[str]):
    written = shown(capfd, is_terminal=True)
    lines = written.split("\r")[1:]
    assert lines[0].startswith("now [####............] 50/200 pods, 33/s, 4 s left")
    assert lines[1].startswith("now [################] 200/200 pods")
    assert lines[-1] == "now: simulated in 0.0 s of CPU time\n"
