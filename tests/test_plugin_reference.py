"""The plugin reference: up to date, and with every name that a plugin author may import."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import mooring.framework
import mooring.testing
from mooring.framework.contract import SERVICES
from mooring.framework.points import Point

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "plugin-reference.md").read_text(encoding="utf-8")
HEADINGS = set(re.findall(r"^#{3,4} (.+)$", PAGE, re.MULTILINE))


def test_it_is_up_to_date_with_signatures_and_docstrings():
    script = [sys.executable, "scripts/make-plugin-reference", "--check"]
    done = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_every_name_has_its_heading():
    names = {*mooring.framework.__all__, *mooring.testing.__all__}
    assert names - HEADINGS == set()


OUTSIDE = {
    *("Any", "Annotated", "Awaitable", "AbstractContextManager", "Callable", "Collection", "Exception", "Hashable"),
    *("Iterable", "Iterator", "Mapping", "Sequence", "Sized", "None", "True", "False"),
    *("NDArray", "DrawFn", "SearchStrategy"),
}
"""Names in signatures that are Python's, NumPy's or hypothesis'."""


def test_every_type_in_a_signature_has_its_heading():
    """Constants and enum members are in capitals; built-in kinds are in their table, with the import."""
    signatures = re.findall(r"^(?:- )?`((?:await )?\w+(?:\(|: )[^`]*)`", PAGE, re.MULTILINE)
    without_texts = [re.sub(r"'[^']*'", "", signature) for signature in signatures]
    types = {name for signature in without_texts for name in re.findall(r"(?<![\w.])[A-Z]\w*[a-z]\w*", signature)}
    kinds = set(re.findall(r"import (\w+)`", PAGE))
    assert len(types) > 100
    assert types - HEADINGS - kinds - OUTSIDE == set()


@pytest.mark.parametrize("name", ["Score", "ScoreColumns", "Fault", "ApiError", "OperatorMistake"])
def test_types_that_authors_meet_without_a_signature_are_there(name):
    assert name in HEADINGS


def test_every_extension_point_and_service_is_there():
    assert {method for point in Point for method in point.methods} <= HEADINGS
    assert {service.__name__ for service in SERVICES} <= HEADINGS


IMPORTS = sorted(set(re.findall(r"^\| `(from mooring\.objects\S* import \w+)`", PAGE, re.MULTILINE)))


@pytest.mark.parametrize("line", IMPORTS)
def test_a_built_in_kind_can_be_imported_as_shown(line):
    found: dict[str, object] = {}
    exec(line, found)
    assert hasattr(found[line.rpartition(" ")[2]], "KIND")


def test_no_name_is_shown_as_an_address_in_memory():
    assert " at 0x" not in PAGE
    assert len(IMPORTS) > 10
