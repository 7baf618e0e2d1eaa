"""Summaries as a picture: an SVG that needs nothing else, readable on light and dark screens.

A drain shows pods a second and, behind the bars of each workload, the bare bind rate. Arrivals show how long pods wait:
the bar is the 99th percentile, the mark in it the median.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from mooring.base.earlier_output import head_of
from mooring.bench.e2e.contenders import BARE
from mooring.bench.e2e.summary import Summary

WIDTH, MARGIN, NAME_WIDTH, LIMIT_WIDTH, NOTE_WIDTH = 960, 24, 130, 50, 260
BAR, GAP, GROUP_GAP = 20, 4, 16
LINE, NOTE_CHARACTERS = 16, 140
COLOURS = (("#0d7d74", "#2cc7b6"), ("#7d8aa0", "#8794ab"), ("#c2661b", "#f0953f"), ("#7a4fc9", "#a98bea"))
"""Of the contenders in their order, on light and dark; further ones begin again."""
_MARK = "<!-- Drawn by mooring bench e2e. -->"
_STYLE = """
  .page { fill: #ffffff } text { fill: #1c2430; font-family: system-ui, sans-serif; font-size: 13px }
  .strong { font-weight: 600 }
  .title { font-size: 16px; font-weight: 600 } .note { fill: #5b6676; font-size: 11.5px }
  .limit { fill: #e9edf2; stroke: #9aa6b6; stroke-dasharray: 4 3 } .mark { stroke: #ffffff; stroke-width: 2 }
"""
_DARK_STYLE = """
  .page { fill: #12171f } text { fill: #e6ebf2 } .note { fill: #9aa6b6 }
  .limit { fill: #222b37; stroke: #66748a } .mark { stroke: #12171f }
"""


@dataclass(frozen=True)
class _Row:
    """One bar of a workload."""

    contender: str
    value: float
    mark: float | None
    note: str


def is_picture(path: str) -> bool:
    """Whether `picture` drew it."""
    return _MARK.encode() in head_of(path)


def picture(summaries: Sequence[Summary], note: str) -> str:
    """The whole SVG document."""
    has_arrivals = any(each.arrivals_per_second is not None for each in summaries)
    groups = {name: [each for each in summaries if each.workload == name] for name in _names(summaries, "workload")}
    contenders = [name for name in _names(summaries, "contender") if name != BARE]
    drawing = _Drawing(contenders)
    title = "Time from creation to binding: 99th percentile, median" if has_arrivals else "Pods scheduled per second"
    drawing.heading(title, contenders, None if has_arrivals else "bare bind rate: a client that only posts bindings")
    rows = {name: [_row(each, has_arrivals) for each in group] for name, group in groups.items()}
    drawing.scale = max((row.value for group in rows.values() for row in group), default=1.0) or 1.0
    for name, group in rows.items():
        drawing.group(name, group)
    drawing.footnote(note)
    return drawing.document(title)


def _names(summaries: Sequence[Summary], field: str) -> list[str]:
    return list(dict.fromkeys(getattr(each, field) for each in summaries))


def _row(summary: Summary, has_arrivals: bool) -> _Row:
    if has_arrivals:
        median, high = summary.latency_p50_seconds or 0.0, summary.latency_p99_seconds or 0.0
        return _Row(summary.contender, high, median, f"{high * 1000:,.0f} ms, median {median * 1000:,.0f} ms")
    parts = [f"{summary.pods_per_second or 0:,.0f}"]
    if summary.contender != BARE and summary.share_of_bare is not None:
        parts.append(f"{summary.share_of_bare:.0%} of bare")
    if summary.times_kube_scheduler is not None and summary.contender not in (BARE, "kube-scheduler"):
        parts.append(f"{summary.times_kube_scheduler:.1f} × kube-scheduler")
    return _Row(summary.contender, summary.pods_per_second or 0.0, None, ", ".join(parts))


class _Drawing:
    """Writes from top to bottom."""

    def __init__(self, contenders: Sequence[str]) -> None:
        self._classes = {name: f"c{at % len(COLOURS)}" for at, name in enumerate(contenders)}
        self._parts: list[str] = []
        self._y = float(MARGIN)
        self.scale = 1.0

    def heading(self, title: str, contenders: Sequence[str], limit: str | None) -> None:
        self._text(MARGIN, self._y + 14, title, "title")
        self._y += 34
        x = float(MARGIN)
        for name in contenders:
            x = self._key(x, self._classes[name], name)
        if limit is not None:
            self._key(x, "limit", limit)
        self._y += 30

    def group(self, name: str, rows: Sequence[_Row]) -> None:
        bars = [row for row in rows if row.contender != BARE]
        limit = next((row for row in rows if row.contender == BARE), None)
        height = len(bars) * (BAR + GAP) - GAP
        left = MARGIN + NAME_WIDTH
        if limit is not None:
            self._rect(left, self._y - 4, self._width(limit.value), max(height, BAR) + 8, "limit")
            self._text(left + self._width(limit.value) + 6, self._y + max(height, BAR) / 2 + 4, limit.note, "note")
        self._text(MARGIN, self._y + max(height, BAR) / 2 + 5, name, "strong")
        for at, row in enumerate(bars):
            y = self._y + at * (BAR + GAP)
            self._rect(left, y, self._width(row.value), BAR, self._classes[row.contender])
            if row.mark is not None:
                x = left + self._width(row.mark)
                self._parts.append(f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + BAR}"/>')
            self._text(WIDTH - MARGIN - NOTE_WIDTH, y + BAR - 5, row.note, "")
        self._y += max(height, BAR) + GROUP_GAP

    def footnote(self, text: str) -> None:
        self._y += 4
        for line in textwrap.wrap(text, NOTE_CHARACTERS):
            self._text(MARGIN, self._y + 10, line, "note")
            self._y += LINE

    def document(self, title: str) -> str:
        height = self._y + MARGIN / 2
        light, dark = (
            " ".join(f".c{at} {{ fill: {colours[which]} }}" for at, colours in enumerate(COLOURS)) for which in (0, 1)
        )
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" role="img">'
        style = (
            f"<style>{_STYLE}  {light}\n  @media (prefers-color-scheme: dark) {{{_DARK_STYLE}  {dark}\n  }}\n</style>"
        )
        page = f'<rect class="page" width="{WIDTH}" height="{height:.0f}"/>'
        return "\n".join([head, _MARK, f"<title>{escape(title)}</title>", style, page, *self._parts, "</svg>\n"])

    def _width(self, value: float) -> float:
        return (WIDTH - 2 * MARGIN - NAME_WIDTH - LIMIT_WIDTH - NOTE_WIDTH) * value / self.scale

    def _key(self, x: float, kind: str, name: str) -> float:
        self._rect(x, self._y, 14, 14, kind)
        self._text(x + 20, self._y + 12, name, "")
        return x + 20 + len(name) * 7.5 + 22

    def _rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        size = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self._parts.append(f'<rect class="{kind}" rx="2" {size}/>')

    def _text(self, x: float, y: float, text: str, kind: str) -> None:
        self._parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>')
