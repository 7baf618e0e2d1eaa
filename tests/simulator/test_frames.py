"""Results in a notebook: data frames, charts by one word, and pages."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests.simulator.scenarios import a_cluster_of, arriving

from mooring.base.errors import OperatorMistake
from mooring.simulator import Workload, compare, profile, simulate
from mooring.simulator.html_report import page
from mooring.simulator.outcome import SimulationResult
from mooring.simulator.parquet_files import polars
from mooring.simulator.plots import BY_RESOURCE, PLAIN


@pytest.fixture(scope="module")
def result() -> SimulationResult:
    arrivals = [
        arriving(0, "low", priority=1, owner="a"),
        arriving(10, "high", priority=5, seconds=30),
        arriving(20, "late", owner="a"),
        arriving(20, "large", cpu="8"),
    ]
    return simulate(a_cluster_of("one"), arrivals)


def test_frames_have_a_row_for_each_thing(result: SimulationResult):
    pytest.importorskip("polars")
    pods = result.pods_frame()
    assert pods.select("name", "node", "waited", "is_preempted", "preempted_by").rows() == [
        ("low", "one", 0.0, True, "default/high"),
        ("high", "one", 0.0, False, ""),
        ("late", "one", 20.0, False, ""),
        ("large", None, None, False, ""),
    ]
    assert result.timeline_frame()["at"].to_list() == [sample.at for sample in result.timeline]
    assert {"cpu_requested", "cpu_fragmentation", "cpu_imbalance"} <= set(result.timeline_frame().columns)
    assert result.influence_frame().filter(plugin="NodeResourcesFit")["last"].to_list()[0] > 0
    assert result.evictions_frame().rows() == [(10.0, "default/low", "default/high", "one")]
    assert result.spread_frame().columns[0] == "owner"


def test_frames_of_nothing_have_their_types(result: SimulationResult):
    frames = pytest.importorskip("polars")
    empty = simulate(a_cluster_of("one"), [])
    for one, other in ((empty.pods_frame(), result.pods_frame()), (empty.evictions_frame(), result.evictions_frame())):
        assert one.schema == other.schema
    assert empty.pods_frame().schema["bound_at"] == frames.Float64


def test_frames_can_be_read_by_other_libraries(result: SimulationResult):
    """Through Arrow's PyCapsule interface, which pandas, DuckDB, PyArrow and others read without a copy."""
    pytest.importorskip("polars")
    assert type(result.pods_frame().__arrow_c_stream__()).__name__ == "PyCapsule"


def test_pandas_reads_frames(result: SimulationResult):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frame = result.pods_frame().to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["name"]) == ["low", "high", "late", "large"]


def test_without_polars_the_command_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch):
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", missing)
    with pytest.raises(OperatorMistake, match="pip install polars"):
        polars("A data frame")


@pytest.mark.parametrize("what", [*BY_RESOURCE, *PLAIN])
def test_each_chart_is_one_call(result: SimulationResult, what: str):
    ElementTree.fromstring(result.plot(what).svg)
    both = compare({"now": result, "next": result}).plot(what)
    assert "now" in both.svg
    assert "next" in both.svg


def test_charts_that_are_not_there_are_named(result: SimulationResult):
    with pytest.raises(OperatorMistake, match='Did you mean "utilisation"'):
        result.plot("utilization")
    with pytest.raises(OperatorMistake, match='No node offers the resource "gpu"'):
        result.plot("utilisation", resource="gpu")


def test_objects_show_themselves_in_notebooks(result: SimulationResult):
    cluster, workload = a_cluster_of("one", "two"), Workload([arriving(0, "x", cpu="1500m"), arriving(5, "y")])
    assert "2 nodes, 0 running pods" in cluster._repr_html_()
    assert "2 pods within 5.0 s" in workload._repr_html_()
    assert "1500m cpu" in workload._repr_html_()
    assert "never bound" in result._repr_html_()
    assert "next against now" in compare({"now": result, "next": result})._repr_html_()


def test_names_in_pages_are_escaped(result: SimulationResult):
    text = page(compare({"<script>": result, "b": result}), "<title>")
    assert "<script>" not in text
    assert "&lt;script&gt;" in text


def test_a_page_has_every_part(result: SimulationResult, tmp_path: Path):
    text = page(compare({"now": result, "next": simulate(a_cluster_of("one"), [arriving(0, "low")], profile())}))
    for heading in ("Figures", "Over time", "Pending pods", "Plugins", "Preempted: now", "next against now"):
        assert f">{heading}</h" in text
    assert "Insufficient cpu" in text
