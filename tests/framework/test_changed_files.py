"""A plugin file that has changed is run again under the same name; one that has not is the module it was."""

from __future__ import annotations

import gc
import os
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.framework.plugin_files import bring_back, plugin_modules
from mooring.framework.registry import Registry

CODE = """
from mooring.framework import Cycle, NodeView, Plugin, Pod

class Changing(Plugin):
    number = {}
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0
"""


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = plugin_modules()
    yield
    bring_back(before)


def loaded(path: Path) -> type:
    [entry] = Registry().add_path(str(path))
    return entry.cls


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "changing_file.py"
    file.write_text(CODE.format(1))
    return file


def test_the_same_words_are_the_same_class(file):
    first = loaded(file)
    os.utime(file)
    assert loaded(file) is first


def test_other_words_are_another_class_also_in_the_same_instant_and_of_the_same_size(file):
    first, before = loaded(file), file.stat()
    file.write_text(CODE.format(2))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = loaded(file)
    assert second is not first
    assert vars(second)["number"] == 2
    assert sys.modules[second.__module__].Changing is second
    assert second.__module__ == first.__module__


def test_nothing_holds_the_old_class_any_more(file):
    first = weakref.ref(loaded(file))
    file.write_text(CODE.format(2))
    loaded(file)
    gc.collect()
    assert first() is None


@pytest.mark.parametrize("code", ["def broken(:", "raise RuntimeError('no')", "raise SystemExit(3)"])
def test_a_file_that_breaks_leaves_the_module_that_was_known(file, code):
    first = loaded(file)
    file.write_text(code)
    with pytest.raises((OperatorMistake, SystemExit)):
        loaded(file)
    assert sys.modules[first.__module__].Changing is first


def test_what_proved_to_be_of_no_use_can_be_taken_back(file):
    first, known = loaded(file), plugin_modules()
    file.write_text(CODE.format(2))
    (file.parent / "fresh_file.py").write_text(CODE.format(3).replace("Changing", "Fresh"))
    loaded(file)
    fresh = loaded(file.parent / "fresh_file.py")
    bring_back(known)
    assert sys.modules[first.__module__].Changing is first
    assert fresh.__module__ not in sys.modules
