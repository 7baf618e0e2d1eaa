"""A plugin that needs another version of the plugin API is refused when it is loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.framework import API_VERSION, Plugin
from mooring.framework.registry import Registry

MAJOR, MINOR = API_VERSION

PLUGIN = """
from mooring.framework import Plugin{more}

class Newer(Plugin):
    {requires}
    def filter(self, pod, node, cycle):
        return None
"""


def a_file(folder: Path, requires: str, more: str = "") -> str:
    path = folder / "newer.py"
    path.write_text(PLUGIN.format(requires=requires, more=more))
    return str(path)


@pytest.mark.parametrize("requires", ["", f"requires_api = ({MAJOR}, 0)", f"requires_api = ({MAJOR}, {MINOR})"])
def test_what_needs_this_version_or_an_older_one_is_loaded(tmp_path, requires):
    (entry,) = Registry().add_path(a_file(tmp_path, requires))
    assert entry.name == "Newer"


@pytest.mark.parametrize(
    ("version", "to_do"),
    [
        ((MAJOR, MINOR + 1), "install a newer Mooring, or a version of Newer for plugin API"),
        ((MAJOR + 1, 0), "install a newer Mooring"),
        ((MAJOR - 1, 9), "change Newer as described in docs/plugin-api.md"),
    ],
)
def test_what_needs_another_version_is_refused_with_file_versions_and_what_to_do(tmp_path, version, to_do):
    path = a_file(tmp_path, f"requires_api = {version}")
    with pytest.raises(OperatorMistake) as refused:
        Registry().add_path(path)
    message = str(refused.value)
    assert path in message
    assert f"needs plugin API {version[0]}.{version[1]}, and this Mooring has {MAJOR}.{MINOR}" in message
    assert to_do in message


@pytest.mark.parametrize("declared", ["requires_api = ({}, {})", "requires_api: tuple[int, int] = ({}, {})"])
def test_a_file_that_cannot_even_be_imported_is_refused_with_the_same_message(tmp_path, declared):
    """It imports a name that only the newer version has, so the class is never made."""
    path = a_file(tmp_path, declared.format(MAJOR, MINOR + 1), more=", NotInventedYet")
    with pytest.raises(OperatorMistake, match=rf"needs plugin API {MAJOR}\.{MINOR + 1}, and this Mooring has"):
        Registry().add_path(path)


@pytest.mark.parametrize("requires", ["", f"requires_api = ({MAJOR}, 0)", "requires_api = something()"])
def test_another_reason_for_not_being_imported_stays_the_reason(tmp_path, requires):
    with pytest.raises(OperatorMistake, match="cannot import name 'NotInventedYet'"):
        Registry().add_path(a_file(tmp_path, requires, more=", NotInventedYet"))


@pytest.mark.parametrize("value", ["'1.2'", "(1,)", "(1, -1)", "1.2", "(1, True)"])
def test_what_is_no_version_is_refused(tmp_path, value):
    with pytest.raises(OperatorMistake, match=r"Newer\.requires_api\s+must be two whole numbers like"):
        Registry().add_path(a_file(tmp_path, f"requires_api = {value}"))


def test_a_plugin_that_declares_nothing_needs_the_first_version_of_this_major():
    assert Plugin.requires_api == (MAJOR, 0)
