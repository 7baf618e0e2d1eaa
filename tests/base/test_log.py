"""Log lines: klog's text and JSON, and which logs write at which verbosity."""

from __future__ import annotations

import io
import json
import os
import re
from typing import Any

import pytest

from mooring.base import log
from mooring.base.log import Log
from mooring.testing import a_node_object, a_pod


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is written, with settings that end with the test."""
    written = io.StringIO()
    monkeypatch.setattr(log, "_settings", log.LogSettings(stream=written))
    return written


def pairs(text: str) -> str:
    """The line after its name."""
    return text.rstrip("\n").split("] ", 1)[1]


def test_a_line_of_text_has_klogs_head(lines):
    Log("queue").info("Pod added")
    assert re.fullmatch(rf'I\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +{os.getpid()} queue\] "Pod added"\n', lines.getvalue()), (
        lines.getvalue()
    )


@pytest.mark.parametrize(("severity", "letter"), [("info", "I"), ("warning", "W"), ("error", "E")])
def test_the_first_letter_is_the_severity(lines, severity, letter):
    getattr(Log("x"), severity)("message")
    assert lines.getvalue()[0] == letter


VALUES: dict[str, tuple[Any, str]] = {
    "a word": ("node-1", '"node-1"'),
    "a text with quotes": ('the "hi"', r'"the \"hi\""'),
    "several lines": ("a\nb", r'"a\nb"'),
    "other alphabets": ("größe", '"größe"'),
    "a number": (5, "5"),
    "a truth": (True, "true"),
    "nothing": (None, "null"),
    "a pod": (a_pod("web-0", namespace="shop"), '"shop/web-0"'),
    "a node": (a_node_object("node-1"), '"node-1"'),
    "an error": (ValueError("broken"), '"broken"'),
    "a list": (["a"], "\"['a']\""),
}


@pytest.mark.parametrize(("value", "shown"), VALUES.values(), ids=VALUES.keys())
def test_a_value_is_one_word_whatever_is_in_it(lines, value, shown):
    Log("x").info("message", value=value)
    assert pairs(lines.getvalue()) == f'"message" value={shown}'
    assert lines.getvalue().count("\n") == 1


@pytest.mark.parametrize(("value", "shown"), VALUES.values(), ids=VALUES.keys())
def test_json_has_the_same_values(lines, value, shown):
    log.configure(format="json")
    Log("x").info("message", value=value)
    assert json.loads(lines.getvalue())["value"] == json.loads(shown)


def test_a_line_of_json_has_the_logger_the_time_and_the_severity(lines):
    log.configure(format="json", verbosity=4)
    Log("binder").v(4).warning("slow", node="node-1")
    line = json.loads(lines.getvalue())
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", line.pop("ts"))
    assert line == {"level": "warning", "v": 4, "logger": "binder", "msg": "slow", "node": "node-1"}


def test_values_keep_their_order(lines):
    Log("x").info("message", b=1, a=2)
    assert pairs(lines.getvalue()) == '"message" b=1 a=2'


@pytest.mark.parametrize(
    ("verbosity", "level", "is_written"), [(0, 0, True), (3, 4, False), (4, 4, True), (6, 4, True)]
)
def test_a_log_writes_from_its_level_on(lines, verbosity, level, is_written):
    log.configure(verbosity=verbosity)
    quiet_or_not = Log("x").v(level)
    quiet_or_not.info("message")
    quiet_or_not.error("message")
    assert bool(quiet_or_not) is is_written
    assert (lines.getvalue() != "") is is_written


def test_a_silent_log_is_falsy_so_that_costly_values_are_not_made(lines):
    if debug := Log("x").v(6):
        debug.info("message", value=pytest.fail("was made"))
    assert lines.getvalue() == ""


def test_only_what_is_given_is_changed(lines):
    log.configure(verbosity=3)
    log.configure(format="json")
    Log("x").v(3).info("message")
    assert json.loads(lines.getvalue())["v"] == 3


def test_lines_go_to_standard_error_by_default(monkeypatch, capsys):
    monkeypatch.setattr(log, "_settings", log.LogSettings())
    Log("x").info("message")
    out, err = capsys.readouterr()
    assert out == ""
    assert '"message"' in err
