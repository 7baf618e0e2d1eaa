"""Charts as self-contained SVG: no dependency, a few kB, light and dark, the same bytes for the same numbers.

line_chart("CPU requested", {"now": points, "next": more}, x=Axis(SECONDS), y=Axis(SHARE, "of all nodes"))
bar_chart("Pods bound", {"now": {"web": 3}, "next": {"web": 5}})
histogram("Waiting", {"now": seconds}, x=Axis(SECONDS))
cdf_chart("Waiting", {"now": seconds}, x=Axis(SECONDS))

A chart shows itself in a notebook, `save` writes it to a file, and `svg` goes into a page as it is. Colours are CSS
variables that follow `prefers-color-scheme`. A title and a description with the figures are there for screen readers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TypeAlias

import msgspec

from mooring.base.errors import OperatorMistake

Points: TypeAlias = Sequence[tuple[float, float]]
Band: TypeAlias = Sequence[tuple[float, float, float]]
"""x, and the lower and the upper end of a range."""

WIDTH, HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 18, 34, 44
_LETTER = 7.2
"""About the width of a letter in the legend."""
_MOST_TICKS = 7

COLOURS = (
    ("#2563a8", "#6ea8e8"),
    ("#c2571a", "#f0935a"),
    ("#2c7a4b", "#6cc391"),
    ("#8a3f9e", "#cf8ee0"),
    ("#a8332f", "#ee8480"),
    ("#806a10", "#d6bb52"),
    ("#0f7582", "#5cc4d1"),
    ("#5b5f68", "#aab0bb"),
)
"""Of the first series, the second, …, on a light and on a dark page: each is read on its background."""

_LIGHT = {"surface": "#ffffff", "ink": "#1d2430", "quiet": "#5a6473", "rule": "#dfe3e9"}
_DARK = {"surface": "#171b22", "ink": "#e6e9ee", "quiet": "#a3acba", "rule": "#333a45"}


def palette(selector: str) -> str:
    """CSS that sets the colours as variables of a selector, in both schemes."""

    def rules(scheme: int) -> str:
        plain = (_LIGHT, _DARK)[scheme]
        named = [f"--{name}:{value}" for name, value in plain.items()]
        return ";".join([*named, *(f"--c{number}:{pair[scheme]}" for number, pair in enumerate(COLOURS))])

    return f"{selector}{{{rules(0)}}}@media(prefers-color-scheme:dark){{{selector}{{{rules(1)}}}}}"


_CLASS = "mooring-chart"
_STYLE = palette(f".{_CLASS}") + "".join(
    f".{_CLASS} {rule}"
    for rule in (
        "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--quiet)}",
        ".t{font-size:14px;font-weight:600;fill:var(--ink)}",
        ".v{fill:var(--ink)}",
        ".s{fill:var(--surface)}",
        ".g{stroke:var(--rule);stroke-width:1}",
        ".a{stroke:var(--quiet);stroke-width:1}",
        ".l{fill:none;stroke-width:1.75;stroke-linejoin:round}",
        ".b{fill-opacity:.18;stroke:none}",
    )
)


class Chart(msgspec.Struct, frozen=True):
    """A picture of numbers."""

    title: str
    svg: str
    """A whole SVG document, which is also valid inside HTML."""

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write it to a file whose name ends in .svg: whole or not at all."""
        from mooring.base.files import write_whole

        if Path(path).suffix.lower() != ".svg":
            raise OperatorMistake(f"Charts are SVG: the name {path} must end in .svg.")
        try:
            write_whole(Path(path), self.svg + "\n")
        except OSError as error:
            raise OperatorMistake(f"{path} cannot be written: {error.strerror or error}.") from error


# Axes


class Unit(msgspec.Struct, frozen=True):
    """How numbers of an axis are divided and written."""

    steps: Callable[[float], float]
    """A round step of at least this size."""
    label: Callable[[float, float], str]
    """The text of a number, where steps are so large."""


class Axis(msgspec.Struct, frozen=True):
    """What an axis measures. Its ends are those of the numbers, unless they are given."""

    unit: Unit
    label: str = ""
    low: float | None = None
    high: float | None = None


def _round_step(least: float) -> float:
    if least <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))


def _number(value: float, step: float) -> str:
    if abs(value) >= 1e6 and step >= 1e5:
        return f"{_trimmed(value / 1e6, step / 1e6)} M"
    if abs(value) >= 1e4 and step >= 1e2:
        return f"{_trimmed(value / 1e3, step / 1e3)} k"
    return _trimmed(value, step)


def _trimmed(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9)) if step > 0 else 0
    return f"{value + 0.0:.{digits}f}"


_TIMES = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800)
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def _time_step(least: float) -> float:
    if least < 1:
        return _round_step(least)
    if least > _TIMES[-1]:
        return _round_step(least / 86400) * 86400
    return next(float(step) for step in _TIMES if step >= least)


def _time(value: float, step: float) -> str:
    size, name = next((each for each in _UNITS if step >= each[0]), _UNITS[-1])
    if not value:
        return "0"
    if value % size:  # of a step such as 90 minutes
        size, name = next((each for each in _UNITS if not value % each[0]), _UNITS[-1])
    return f"{_trimmed(value / size, step / size if step < size else 1)} {name}"


NUMBER = Unit(_round_step, _number)
COUNT = Unit(lambda least: max(1.0, _round_step(least)), _number)
SHARE = Unit(_round_step, lambda value, step: f"{_trimmed(value * 100, step * 100)} %")
SECONDS = Unit(_time_step, _time)


class _Scale:
    """From numbers to pixels, with ticks."""

    def __init__(self, axis: Axis, values: Iterable[float], start: float, end: float, *, from_zero: bool) -> None:
        finite = [value for value in values if math.isfinite(value)]
        low = axis.low if axis.low is not None else min(finite, default=0.0)
        high = axis.high if axis.high is not None else max(finite, default=1.0)
        if from_zero and axis.low is None:
            low = min(low, 0.0)
        if high <= low:
            high = low + 1.0
        self._step = axis.unit.steps((high - low) / _MOST_TICKS)
        if from_zero and axis.high is None:
            high = math.ceil(high / self._step - 1e-9) * self._step
        self.low, self.high, self._start, self._end = low, high, start, end
        self._unit = axis.unit

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return self._start + min(1.0, max(0.0, share)) * (self._end - self._start)

    def ticks(self) -> list[tuple[float, str]]:
        """Pixels and texts."""
        first = math.ceil(self.low / self._step - 1e-9)
        last = math.floor(self.high / self._step + 1e-9)
        numbers = [number * self._step for number in range(first, last + 1)]
        return [(self.at(number), self._unit.label(number, self._step)) for number in numbers]


# Charts


def line_chart(
    title: str,
    series: Mapping[str, Points],
    *,
    x: Axis,
    y: Axis,
    bands: Mapping[str, Band] | None = None,
    is_stepped: bool = False,
    note: str = "",
) -> Chart:
    """Several lines. A band is a range around the line of its name; `is_stepped`: a value lasts until the next one."""
    bands = bands or {}
    canvas = _Canvas(title, list(dict.fromkeys([*series, *bands])))
    xs = [at for points in series.values() for at, _ in points] + [row[0] for band in bands.values() for row in band]
    ys = [value for points in series.values() for _, value in points]
    ys += [value for band in bands.values() for _, low, high in band for value in (low, high)]
    if not xs:
        return canvas.empty(note)
    across = _Scale(x, xs, canvas.left, canvas.right, from_zero=False)
    up = _Scale(y, ys, canvas.bottom, canvas.top, from_zero=True)
    canvas.draw_axes(across, up, x.label, y.label)
    for name, band in bands.items():
        if not band:
            continue
        band = list({int(across.at(row[0])): row for row in band}.values())  # one range for each column of pixels
        path = [(across.at(at), up.at(high)) for at, _, high in band]
        path += [(across.at(at), up.at(low)) for at, low, _ in reversed(band)]
        canvas.draw(f'<path class="b" fill="{canvas.colour(name)}" d="{_path(path)}Z"/>')
    for name, points in series.items():
        finite = [(at, value) for at, value in points if math.isfinite(at) and math.isfinite(value)]
        pixels = _thinned([(across.at(at), up.at(value)) for at, value in finite])
        if len(pixels) == 1:
            [(at, height)] = pixels
            canvas.draw(f'<circle fill="{canvas.colour(name)}" cx="{_px(at)}" cy="{_px(height)}" r="3"/>')
        elif pixels:
            canvas.draw(
                f'<path class="l" stroke="{canvas.colour(name)}"{canvas.dash(name)} '
                f'd="{_path(pixels, is_stepped=is_stepped)}"/>'
            )
    return canvas.chart(note, [_line_described(name, points, y.unit) for name, points in series.items()])


def cdf_chart(
    title: str,
    values: Mapping[str, Sequence[float]],
    *,
    x: Axis,
    y_label: str = "share of the values",
    note: str = "",
) -> Chart:
    """Which share of the values is at most so large."""
    series = {}
    for name, each in values.items():
        ordered = sorted(each)
        series[name] = [(value, number / len(ordered)) for number, value in enumerate(ordered, 1)]
        if ordered:
            series[name] = [(min(0.0, ordered[0]), 0.0), *series[name]]
    return line_chart(title, series, x=x, y=Axis(SHARE, y_label, 0.0, 1.0), is_stepped=True, note=note)


def histogram(
    title: str, values: Mapping[str, Sequence[float]], *, x: Axis, bins: int = 24, y_label: str = "", note: str = ""
) -> Chart:
    """How many values lie where. Several series stand side by side in each interval."""
    canvas = _Canvas(title, list(values))
    every = [value for each in values.values() for value in each]
    if not every:
        return canvas.empty(note)
    across = _Scale(x, every, canvas.left, canvas.right, from_zero=False)
    width = (across.high - across.low) / bins
    counts = {name: [0] * bins for name in values}
    for name, each in values.items():
        for value in each:
            counts[name][min(bins - 1, max(0, int((value - across.low) / width)))] += 1
    up = _Scale(
        Axis(COUNT), [count for each in counts.values() for count in each], canvas.bottom, canvas.top, from_zero=True
    )
    canvas.draw_axes(across, up, x.label, y_label)
    thickness = (canvas.right - canvas.left) / bins
    for place, (name, each) in enumerate(counts.items()):
        for number, count in enumerate(each):
            left = canvas.left + thickness * (number + 0.05 + 0.9 * place / len(counts))
            canvas.draw_bar(name, left, up.at(count), 0.9 * thickness / len(counts), canvas.bottom - up.at(count))
    described = [f"{name}: {len(each):,} values" for name, each in values.items()]
    return canvas.chart(note, described)


def bar_chart(
    title: str, bars: Mapping[str, Mapping[str, float]], *, x: Axis | None = None, most: int = 20, note: str = ""
) -> Chart:
    """Horizontal bars: for each label one bar of each series. The first labels are shown, in the order given."""
    x = x or Axis(NUMBER)
    labels = list(dict.fromkeys(label for each in bars.values() for label in each))
    if len(labels) > most:
        note = note or f"the first {most} of {len(labels):,}"
        labels = labels[:most]
    margin = min(260.0, max([_LEFT, *(12 + _LETTER * len(label) for label in labels)]))
    thickness = 14.0 if len(bars) < 3 else 9.0
    group = thickness * max(1, len(bars)) + 8
    canvas = _Canvas(title, list(bars), left=margin, inner_height=group * max(1, len(labels)))
    values = [value for each in bars.values() for label, value in each.items() if label in labels]
    if not values:
        return canvas.empty(note)
    across = _Scale(x, values, canvas.left, canvas.right - 46, from_zero=True)
    canvas.draw_axes(across, None, x.label, "")
    step = (across.high - across.low) / 100
    for row, label in enumerate(labels):
        top = canvas.top + row * group + 4
        shown = label if len(label) * _LETTER < margin - 8 else f"{label[: int((margin - 16) / _LETTER)]}…"
        middle = top + (group - 8) / 2 + 4
        canvas.draw(f'<text x="{_px(canvas.left - 8)}" y="{_px(middle)}" text-anchor="end">{escape(shown)}</text>')
        for place, (name, each) in enumerate(bars.items()):
            if label not in each:
                continue
            value, start = each[label], across.at(0.0)
            end, height = across.at(value), top + place * thickness
            canvas.draw_bar(name, min(start, end), height, abs(end - start), thickness - 2)
            text = x.unit.label(value, _round_step(step) if step < 1 else 1.0)
            beside, line = _px(max(start, end) + 5), _px(height + thickness / 2 + 3)
            canvas.draw(f'<text class="v" x="{beside}" y="{line}">{escape(text)}</text>')
    described = [
        f"{name}: " + ", ".join(f"{label} {_plain(each[label])}" for label in labels if label in each)
        for name, each in bars.items()
    ]
    return canvas.chart(note, described)


class _Canvas:
    """The parts that all charts have: background, title, legend, axes."""

    def __init__(
        self, title: str, names: Sequence[str], *, left: float = _LEFT, inner_height: float | None = None
    ) -> None:
        self._title, self._names = title, list(names)
        self.left, self.right = left, float(WIDTH - _RIGHT)
        self._legend_rows = self._laid_out() if len(self._names) > 1 else []
        self.top = float(_TOP + 20 * len(self._legend_rows))
        height = inner_height if inner_height is not None else HEIGHT - _TOP - _BOTTOM
        self.bottom = self.top + height
        self._height = self.bottom + _BOTTOM
        self._parts: list[str] = []
        self._y_label = ""

    def _laid_out(self) -> list[list[str]]:
        rows: list[list[str]] = [[]]
        room = float(WIDTH - 32)
        for name in self._names:
            needed = 30 + _LETTER * len(name)
            if rows[-1] and needed > room:
                rows.append([])
                room = float(WIDTH - 32)
            rows[-1].append(name)
            room -= needed
        return rows

    def colour(self, name: str) -> str:
        return f"var(--c{self._names.index(name) % len(COLOURS)})"

    def dash(self, name: str) -> str:
        """A second line of a colour is dashed."""
        return "" if self._names.index(name) < len(COLOURS) else ' stroke-dasharray="6 4"'

    def draw(self, part: str) -> None:
        self._parts.append(part)

    def draw_bar(self, name: str, left: float, top: float, width: float, height: float) -> None:
        if width > 0 and height > 0:
            self.draw(
                f'<rect fill="{self.colour(name)}" x="{_px(left)}" y="{_px(top)}" '
                f'width="{_px(width)}" height="{_px(height)}"/>'
            )

    def draw_axes(self, across: _Scale, up: _Scale | None, x_label: str, y_label: str) -> None:
        for at, text in across.ticks():
            if up is None:
                self.draw(_line("g", at, self.top, at, self.bottom))
            else:
                self.draw(_line("a", at, self.bottom, at, self.bottom + 4))
            self.draw(f'<text x="{_px(at)}" y="{_px(self.bottom + 17)}" text-anchor="middle">{escape(text)}</text>')
        for at, text in up.ticks() if up is not None else ():
            self.draw(_line("g", self.left, at, self.right, at))
            self.draw(f'<text x="{_px(self.left - 7)}" y="{_px(at + 4)}" text-anchor="end">{escape(text)}</text>')
        self.draw(_line("a", self.left, self.bottom, self.right, self.bottom))
        if up is None:
            self.draw(_line("a", across.at(0.0), self.top, across.at(0.0), self.bottom))
        if x_label:
            middle = (self.left + self.right) / 2
            self.draw(
                f'<text x="{_px(middle)}" y="{_px(self.bottom + 35)}" text-anchor="middle">{escape(x_label)}</text>'
            )
        self._y_label = y_label

    def empty(self, note: str) -> Chart:
        """In place of a chart of no numbers."""
        middle, height = WIDTH / 2, (self.top + self.bottom) / 2
        self.draw(f'<text x="{_px(middle)}" y="{_px(height)}" text-anchor="middle">no values</text>')
        return self.chart(note, ["no values"])

    def chart(self, note: str, described: Sequence[str]) -> Chart:
        head = [f'<text class="t" x="16" y="22">{escape(self._title)}</text>']
        if beside := ", ".join(text for text in (self._y_label, note) if text):
            head.append(f'<text x="{WIDTH - _RIGHT}" y="22" text-anchor="end">{escape(beside)}</text>')
        for row, names in enumerate(self._legend_rows):
            at = 16.0
            for name in names:
                y = 42 + 20 * row
                head.append(
                    f'<path class="l" stroke="{self.colour(name)}" stroke-width="3"{self.dash(name)} '
                    f'd="M{_px(at)} {y - 4}h16"/><text x="{_px(at + 21)}" y="{y}">{escape(name)}</text>'
                )
                at += 30 + _LETTER * len(name)
        description = "; ".join(described) + (f" ({note})" if note else "")
        size = f'viewBox="0 0 {WIDTH} {_px(self._height)}" width="{WIDTH}" height="{_px(self._height)}"'
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{_CLASS}" role="img" aria-label="{escape(self._title)}" '
            f'{size} style="max-width:100%;height:auto">'
            f"<title>{escape(self._title)}</title><desc>{escape(description)}</desc><style>{_STYLE}</style>"
            f'<rect class="s" width="{WIDTH}" height="{_px(self._height)}" rx="6"/>'
            f"{''.join(head)}{''.join(self._parts)}</svg>"
        )
        return Chart(self._title, svg)


def _line(kind: str, x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<path class="{kind}" d="M{_px(x1)} {_px(y1)}L{_px(x2)} {_px(y2)}"/>'


def _px(value: float) -> str:
    """To a tenth of a pixel."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


def _path(pixels: Points, *, is_stepped: bool = False) -> str:
    (x, y), *rest = pixels
    parts = [f"M{_px(x)} {_px(y)}"]
    for x, y in rest:
        parts.append(f"H{_px(x)}V{_px(y)}" if is_stepped else f"L{_px(x)} {_px(y)}")
    return "".join(parts)


def _thinned(pixels: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Of many points in one column of pixels the first, the extremes and the last: nothing else is seen."""
    if len(pixels) <= WIDTH:
        return pixels
    columns: dict[int, list[tuple[float, float]]] = {}
    for point in pixels:
        columns.setdefault(int(point[0]), []).append(point)
    thinned: list[tuple[float, float]] = []
    for points in columns.values():
        if len(points) <= 4:
            thinned += points
            continue
        places = {0, len(points) - 1}
        heights = [height for _, height in points]
        places |= {heights.index(min(heights)), heights.index(max(heights))}
        thinned += [points[place] for place in sorted(places)]
    return thinned


def _line_described(name: str, points: Points, unit: Unit) -> str:
    if not points:
        return f"{name}: no values"
    values = [value for _, value in points]
    span = max(values) - min(values) or abs(max(values)) or 1.0
    low, high, last = (unit.label(value, _round_step(span / 100)) for value in (min(values), max(values), values[-1]))
    return f"{name}: between {low} and {high}, at the end {last}"


def _plain(value: float) -> str:
    return f"{value:,.4g}"
