"""The actions of templates mean what they mean to upstream's harness; others are errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.bench.scheduler_perf.templates import Template, read_template

RENDERED = {
    "the number of the object": ("name: pod-{{.Index}}", {"name": "pod-7"}),
    "spaces inside do not count": ("name: pod-{{ .Index }}", {"name": "pod-7"}),
    "how many there are": ("maxSkew: {{ .Count }}", {"maxSkew": 100}),
    "a remainder": ("hostPort: 8{{ Mod .Index 5 }}", {"hostPort": 82}),
    "whole division": ("memory: {{ DivideInt 30000 .Count }}Mi", {"memory": "300Mi"}),
    "whole division is cut": ("x: {{ DivideInt .Index 5 }}", {"x": 1}),
    "calls in parentheses": ("x: {{ AddInt (MultiplyInt .Index 2) 1 1 }}", {"x": 16}),
    "fractions": ("x: {{ DivideFloat .Index 2 }}", {"x": 3.5}),
    "differences": ("x: {{ SubtractInt .Count .Index }}", {"x": 93}),
    "a marker that trims the text around": ("x: x {{- .Index -}}  y", {"x": "x7y"}),
    "a comment is nothing": ("x: {{/* ignored */}}1", {"x": 1}),
}


@pytest.mark.parametrize(("text", "document"), RENDERED.values(), ids=RENDERED.keys())
def test_an_action_is_replaced_by_its_value(text: str, document: object):
    assert Template(Path("t.yaml"), text).render(7, 100) == document


REFUSED = {
    "conditions": ("{{ if .Index }}", 'uses "if", which is not supported here'),
    "unknown functions": ("{{ Power 2 3 }}", 'calls "Power"'),
    "unknown fields": ("{{ .Name }}", "the fields are .Index and .Count"),
    "pipelines": ("{{ .Index | printf }}", "is not an action that is supported here"),
    "too few arguments": ("{{ Mod 3 }}", "calls Mod with 1 arguments; it takes 2"),
    "an open parenthesis": ("{{ AddInt (AddInt 1 2 }}", "parenthesis without its end"),
    "no end": ("name: {{ .Index", "without its end"),
    "nothing inside": ("{{ }}", "has no value"),
    "two values": ("{{ 1 2 }}", "more than one command"),
}


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_supported_is_reported(text: str, message: str):
    with pytest.raises(OperatorMistake, match="problem") as raised:
        Template(Path("t.yaml"), text)
    assert message in str(raised.value)


def test_a_template_without_actions_is_parsed_once():
    template = Template(Path("t.yaml"), "kind: Pod")
    assert template.is_static
    assert template.render(0, 2) is template.render(1, 2)


def test_division_by_zero_is_reported():
    with pytest.raises(OperatorMistake, match="divides by zero"):
        Template(Path("t.yaml"), "x: {{ DivideInt 1 .Index }}").render(0, 1)


def test_a_missing_template_is_reported_with_its_path(tmp_path: Path):
    with pytest.raises(OperatorMistake, match=r"absent\.yaml"):
        read_template(tmp_path / "absent.yaml")
