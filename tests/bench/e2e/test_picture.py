"""The picture is an SVG of its own: bars as long as the figures, names as text, colours for light and dark."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from tests.bench.e2e.runs import a_run

from mooring.bench.e2e.measurement import Latency
from mooring.bench.e2e.picture import picture
from mooring.bench.e2e.summary import summarize

SVG = "{http://www.w3.org/2000/svg}"
DRAINED = [
    a_run("bare", pods_per_second=1000.0),
    a_run("mooring", pods_per_second=800.0),
    a_run("kube-scheduler", pods_per_second=200.0),
]


def drawn(runs, note: str = "") -> ElementTree.Element:
    return ElementTree.fromstring(picture(summarize(runs), note))


def texts(drawing: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in drawing.iter(f"{SVG}text")]


def widths(drawing: ElementTree.Element) -> dict[str, float]:
    """By class; the keys of the legend come first and are overwritten."""
    return {each.get("class", ""): float(each.get("width", "")) for each in drawing.iter(f"{SVG}rect")}


def test_bars_are_as_long_as_the_rates():
    found = widths(drawn(DRAINED))
    assert found["c0"] / found["limit"] == pytest.approx(0.8, rel=0.01)
    assert found["c1"] / found["c0"] == pytest.approx(0.25, rel=0.01)


def test_bars_are_labelled_with_their_ratios():
    shown = texts(drawn(DRAINED))
    assert "800, 80% of bare, 4.0 × kube-scheduler" in shown
    assert "200, 20% of bare" in shown
    assert "1,000" in shown


def test_arrivals_show_percentiles():
    run = a_run("mooring", latency=Latency(0.005, 0.01, 0.02, 0.03), arrivals_per_second=100.0)
    drawing = drawn([run])
    assert "20 ms, median 5 ms" in texts(drawing)
    assert [each.get("class") for each in drawing.iter(f"{SVG}line")] == ["mark"]


def test_names_of_contenders_are_text_whatever_they_hold():
    shown = texts(drawn([a_run("<a> & b", pods_per_second=1.0)], "<note>"))
    assert "<a> & b" in shown
    assert "<note>" in shown


def test_it_needs_nothing_else_and_knows_dark_screens():
    text = picture(summarize(DRAINED), "")
    assert "prefers-color-scheme: dark" in text
    assert "href" not in text
    assert "url(" not in text
    assert "script" not in text


def test_nothing_bound_is_a_picture_too():
    assert texts(drawn([a_run("mooring", bound=0)]))
