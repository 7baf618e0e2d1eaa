"""Layouts of Go, read as Go reads them."""

from __future__ import annotations

import pytest

from mooring.plugins.community.go_time_layout import RFC3339, BadLayout, GoTimeLayout

AT = 1_700_000_000.0  # 2023-11-14T22:13:20Z

CASES = {
    "RFC 3339": (RFC3339, "2023-11-14T22:13:20Z", AT),
    "with an offset": (RFC3339, "2023-11-15T00:13:20+02:00", AT),
    "with a fraction": (RFC3339, "2023-11-14T22:13:20.5Z", AT + 0.5),
    "a fraction in the layout": ("2006-01-02T15:04:05.000Z07:00", "2023-11-14T22:13:20.250Z", AT + 0.25),
    "ANSI C": ("Mon Jan _2 15:04:05 2006", "Tue Nov 14 22:13:20 2023", AT),
    "RFC 1123": ("Mon, 02 Jan 2006 15:04:05 MST", "Tue, 14 Nov 2023 22:13:20 UTC", AT),
    "twelve hours": ("1/2/2006 3:04:05 PM", "11/14/2023 10:13:20 PM", AT),
    "midnight": ("2006-01-02 3:04 PM", "2023-11-14 12:00 AM", 1_699_920_000.0),
    "a date alone": ("2006-01-02", "2023-11-14", 1_699_920_000.0),
    "two digits of the year": ("06-01-02", "23-11-14", 1_699_920_000.0),
    "the last century": ("06", "70", 0.0),
    "an offset without a colon": ("20060102150405-0700", "20231114171320-0500", AT),
    "another layout": (RFC3339, "14.11.2023", None),
    "no such day": (RFC3339, "2023-02-30T00:00:00Z", None),
    "no such month": ("Jan 2006", "Foo 2023", None),
    "no such hour": ("3 PM", "13 PM", None),
}


@pytest.mark.parametrize(("layout", "text", "seconds"), CASES.values(), ids=CASES.keys())
def test_a_text_is_read_by_its_layout(layout, text, seconds):
    assert GoTimeLayout(layout).seconds(text) == seconds


@pytest.mark.parametrize("layout", ["", "YYYY-MM-DD", "2006-01-02 2006"])
def test_a_layout_that_shows_no_time_is_refused(layout):
    with pytest.raises(BadLayout):
        GoTimeLayout(layout)
