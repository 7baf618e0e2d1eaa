"""Charts: valid SVG, the same bytes each time, round ticks, both colour schemes, readable without seeing them."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from mooring.base.errors import OperatorMistake
from mooring.simulator.charts import (
    COUNT,
    NUMBER,
    SECONDS,
    SHARE,
    Axis,
    Chart,
    bar_chart,
    cdf_chart,
    histogram,
    line_chart,
)

SVG = "{http://www.w3.org/2000/svg}"
POINTS = [(0.0, 0.0), (60.0, 0.5), (120.0, 0.25)]


def a_line(**more) -> Chart:
    return line_chart("Requested", {"now": POINTS}, x=Axis(SECONDS, "time"), y=Axis(SHARE), **more)


CHARTS = {
    "lines": a_line,
    "lines with a band": lambda: a_line(bands={"now": [(0.0, 0.0, 0.1), (60.0, 0.4, 0.6)]}),
    "steps": lambda: a_line(is_stepped=True),
    "one point": lambda: line_chart("One", {"only": [(1.0, 1.0)]}, x=Axis(NUMBER), y=Axis(COUNT)),
    "no points": lambda: line_chart("None", {"none": []}, x=Axis(NUMBER), y=Axis(COUNT)),
    "bars": lambda: bar_chart("Bars", {"now": {"a": 1, "b": 2.5}, "next": {"b": -1}}),
    "no bars": lambda: bar_chart("Bars", {"now": {}}),
    "a histogram": lambda: histogram("Histogram", {"now": [1, 2, 2, 3], "next": [2]}, x=Axis(SECONDS)),
    "a histogram of one value": lambda: histogram("Histogram", {"now": [5, 5]}, x=Axis(SECONDS)),
    "a cumulative distribution": lambda: cdf_chart("Waited", {"now": [0, 1, 5], "next": []}, x=Axis(SECONDS)),
}


def texts(chart: Chart) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(chart.svg).iter(f"{SVG}text")]


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS.keys())
def test_a_chart_is_valid_and_repeats_to_the_byte(make):
    chart = make()
    root = ElementTree.fromstring(chart.svg)
    assert [child.tag for child in root][:2] == [f"{SVG}title", f"{SVG}desc"]
    assert root[0].text == chart.title
    assert root[1].text
    assert make().svg == chart.svg == chart._repr_svg_() == chart._repr_html_()


@pytest.mark.parametrize("make", CHARTS.values(), ids=CHARTS.keys())
def test_every_colour_is_set_in_both_schemes_and_for_charts_only(make):
    """A style in a page is the page's: nothing else may change by it."""
    svg = make().svg
    style = re.search("<style>(.*)</style>", svg)
    assert style is not None
    light, _, dark = style[1].partition("@media(prefers-color-scheme:dark)")
    for used in set(re.findall(r"var\((--[a-z0-9]+)\)", svg)):
        assert f"{used}:#" in light
        assert f"{used}:#" in dark
    selectors = re.findall(r"(?:^|[{}])([^{}@]+)\{", style[1])
    assert all(selector.startswith(".mooring-chart") for selector in selectors)


TICKS = {
    "seconds": (SECONDS, 50, ["0", "10 s", "20 s", "30 s", "40 s", "50 s"]),
    "minutes": (SECONDS, 600, ["0", "2 min", "4 min", "6 min", "8 min", "10 min"]),
    "hours": (SECONDS, 86_400, ["0", "6 h", "12 h", "18 h", "24 h"]),
    "days": (SECONDS, 7 * 86_400, ["0", "1 d", "2 d", "3 d", "4 d", "5 d", "6 d", "7 d"]),
    "parts of a second": (SECONDS, 0.5, ["0", "0.1 s", "0.2 s", "0.3 s", "0.4 s", "0.5 s"]),
    "shares": (SHARE, 1, ["0 %", "20 %", "40 %", "60 %", "80 %", "100 %"]),
    "small shares": (SHARE, 0.02, ["0.0 %", "0.5 %", "1.0 %", "1.5 %", "2.0 %"]),
    "counts are whole": (COUNT, 2, ["0", "1", "2"]),
    "thousands": (NUMBER, 50_000, ["0", "10 k", "20 k", "30 k", "40 k", "50 k"]),
    "millions": (NUMBER, 3_000_000, ["0", "500 k", "1.0 M", "1.5 M", "2.0 M", "2.5 M", "3.0 M"]),
}


@pytest.mark.parametrize(("unit", "high", "expected"), TICKS.values(), ids=TICKS.keys())
def test_ticks_are_round(unit, high: float, expected: list[str]):
    chart = line_chart("Ticks", {"a": [(0.0, 0.0), (high, 1.0)]}, x=Axis(unit), y=Axis(NUMBER))
    assert texts(chart)[1 : 1 + len(expected)] == expected


def test_a_legend_is_there_for_several_series():
    assert "now" not in texts(a_line())
    both = line_chart("Both", {"now": POINTS, "next": POINTS}, x=Axis(SECONDS), y=Axis(SHARE))
    assert texts(both)[1:3] == ["now", "next"]


def test_names_are_escaped():
    chart = bar_chart("<b>", {"a & b": {'"quoted" <i>': 1.0}, "c": {}}, note="<note>")
    assert "<b>" not in chart.svg
    assert {"<b>", "<note>", "a & b", '"quoted" <i>'} <= set(texts(chart))


def test_many_points_take_as_much_room_as_can_be_seen():
    points = [(float(at), float(at % 97)) for at in range(100_000)]
    chart = line_chart("Many", {"a": points}, x=Axis(NUMBER), y=Axis(NUMBER))
    assert len(chart.svg) < 60_000


def test_a_description_has_the_figures():
    root = ElementTree.fromstring(a_line().svg)
    assert root[1].text == "now: between 0.0 % and 50.0 %, at the end 25.0 %"


def test_a_chart_is_saved_whole(tmp_path: Path):
    a_line().save(tmp_path / "chart.svg")
    assert (tmp_path / "chart.svg").read_text() == a_line().svg + "\n"


MISTAKES = {
    "another format": ("chart.png", r"must end in \.svg"),
    "a folder that is not there": ("missing/chart.svg", "cannot be written: No such file"),
}


@pytest.mark.parametrize(("name", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_chart_that_cannot_be_saved_is_explained(tmp_path: Path, name: str, message: str):
    with pytest.raises(OperatorMistake, match=message):
        a_line().save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []
