"""The parts of a scheduler get what they need from their constructors."""

import ast
from pathlib import Path

import pytest

import mooring

SOURCES = Path(mooring.__file__).parent
COMPOSING = [
    "scheduler/wiring.py",
    "scheduler/loop.py",
    "scheduler/shutdown.py",
    "scheduler/shadow/wiring.py",
    "cli/election.py",
    "cli/reload.py",
    "cli/run.py",
    "cli/serving.py",
    "cli/shadow.py",
    "cli/tracing.py",
    "cli/up.py",
]


def assigned_attributes(tree: ast.AST) -> list[str]:
    """Every `part.attribute = …`, also in tuples and with operators; not those of `self`."""
    attributes = [
        node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    ]
    return [name for name in map(ast.unparse, attributes) if not name.startswith("self.")]


@pytest.mark.parametrize("module", COMPOSING)
def test_no_attribute_of_a_part_is_assigned_after_its_construction(module):
    assert assigned_attributes(ast.parse((SOURCES / module).read_text(encoding="utf-8"))) == []


def test_an_assignment_from_outside_is_found():
    text = "scheduler.metrics.tracer = tracer\nself.queue = access.queue = queue\na, b.c = 1, 2\nd.e += 1"
    assert assigned_attributes(ast.parse(text)) == ["scheduler.metrics.tracer", "access.queue", "d.e", "b.c"]
