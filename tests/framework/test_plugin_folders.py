"""A plugin in several files: its folder is a package, whose files import each other."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mooring.base.errors import OperatorMistake
from mooring.framework.plugin_files import bring_back, plugin_modules, with_helpers
from mooring.framework.registry import Registry
from mooring.scheduler.reload.watched_files import WatchedFiles
from mooring.testing import a_cluster, a_node, a_plugin, a_pod

RULES = """
{imports}
from mooring.framework import Cycle, NodeView, Plugin, Pod

class {name}(Plugin):
    number = {number}
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0
"""


def rules(imports: str, number: str = "NUMBER", name: str = "Rules") -> str:
    return RULES.format(imports=imports, number=number, name=name)


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before, path = plugin_modules(), list(sys.path)
    yield
    bring_back(before)
    assert sys.path == path


Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("mine/rules.py", "…")`."""

    def write_file(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write_file


def numbers(*paths: Path) -> dict[str, int]:
    """What each plugin of the paths was made with."""
    registry = Registry()
    return {entry.name: vars(entry.cls)["number"] for path in paths for entry in registry.add_path(str(path))}


IMPORTS = {
    "a name of a helper": "from .helpers import NUMBER",
    "the helper itself": "from . import helpers\nNUMBER = helpers.NUMBER",
    "everything of a helper": "from .helpers import *",
    "a helper that the folder does not offer as a plugin": "from ._private import NUMBER",
    "a helper of a helper": "from .between import NUMBER",
    "a module in a folder below": "from .below.deep import NUMBER",
    "a package below": "from .package import NUMBER",
    "inside a function": "def number():\n    from .helpers import NUMBER\n    return NUMBER\nNUMBER = number()",
    "by its name as text": "import importlib\nNUMBER = importlib.import_module('.helpers', __package__).NUMBER",
}


def a_folder(write: Write, imports: str, number: int = 1) -> Path:
    for helper in ("helpers", "_private", "below/deep", "package/__init__"):
        write(f"mine/{helper}.py", f"NUMBER = {number}")
    write("mine/between.py", "from .helpers import NUMBER")
    return write("mine/rules.py", rules(imports)).parent


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS.keys())
@pytest.mark.parametrize("named", ["", "rules.py"], ids=["by the folder", "by the file"])
def test_a_plugin_file_may_import(write, imports, named):
    assert numbers(a_folder(write, imports) / named) == {"Rules": 1}


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS.keys())
def test_a_changed_helper_is_run_again_with_what_imports_it(write, imports):
    folder = a_folder(write, imports)
    assert numbers(folder) == {"Rules": 1}
    assert numbers(a_folder(write, imports, number=2)) == {"Rules": 2}


@pytest.mark.parametrize("imports", IMPORTS.values(), ids=IMPORTS.keys())
@pytest.mark.parametrize("named", ["", "rules.py"], ids=["by the folder", "by the file"])
def test_a_changed_helper_is_noticed(write, imports, named):
    folder = a_folder(write, imports)
    files = WatchedFiles(None, [str(folder / named)])
    before = files.digest()
    a_folder(write, imports, number=2)
    assert files.digest() != before


def test_a_helper_that_was_missing_is_noticed_when_it_comes(write):
    file = write("mine/rules.py", rules("from .helpers import NUMBER"))
    files = WatchedFiles(None, [str(file)])
    before = files.digest()
    with pytest.raises(OperatorMistake):
        numbers(file)
    write("mine/helpers.py", "NUMBER = 1")
    assert files.digest() != before
    assert numbers(file) == {"Rules": 1}


def test_a_neighbour_that_is_not_imported_is_of_no_interest(write):
    file = write("mine/rules.py", rules("NUMBER = 1"))
    files = WatchedFiles(None, [str(file)])
    before = files.digest()
    write("mine/other.py", "raise RuntimeError")
    assert files.digest() == before
    assert with_helpers(str(file)) == [file]
    assert numbers(file) == {"Rules": 1}


def classes(folder: Path) -> dict[str, type]:
    return {entry.name: entry.cls for entry in Registry().add_path(str(folder))}


def test_only_what_imports_a_changed_helper_is_run_again(write):
    write("mine/helpers.py", "NUMBER = 1")
    write("mine/others.py", "NUMBER = 1")
    write("mine/a.py", rules("from .helpers import NUMBER", name="A"))
    folder = write("mine/b.py", rules("from .others import NUMBER", name="B")).parent
    before = classes(folder)
    write("mine/helpers.py", "NUMBER = 2")
    after = classes(folder)
    assert after["A"] is not before["A"]
    assert after["B"] is before["B"]


def test_a_changed_init_file_is_run_again_with_everything(write):
    write("mine/__init__.py", "NUMBER = 1")
    write("mine/a.py", rules("from . import NUMBER", name="A"))
    folder = write("mine/b.py", rules("NUMBER = 1", name="B")).parent
    before = classes(folder)
    write("mine/__init__.py", "NUMBER = 2")
    after = classes(folder)
    assert all(after[name] is not before[name] for name in "AB")
    assert numbers(folder) == {"A": 2, "B": 1}


def test_a_helper_is_one_module_for_all_that_import_it(write):
    write("mine/helpers.py", "class Shared: pass")
    imports = "from .helpers import Shared\nNUMBER = 1"
    write("mine/a.py", rules(imports, name="A"))
    folder = write("mine/b.py", rules(imports, name="B")).parent
    a, b = (sys.modules[cls.__module__] for cls in classes(folder).values())
    assert vars(a)["Shared"] is vars(b)["Shared"]


def test_two_folders_may_hold_files_of_one_name(write):
    folders = []
    for number, name in ((1, "A"), (2, "B")):
        write(f"{name}/helpers.py", f"NUMBER = {number}")
        folders.append(write(f"{name}/rules.py", rules("from .helpers import NUMBER", name=name)).parent)
    assert numbers(*folders) == {"A": 1, "B": 2}
    before = [classes(folder) for folder in folders]
    assert [classes(folder) for folder in folders] == before


def test_a_version_that_breaks_leaves_plugin_and_helper_as_they_were(write):
    folder = a_folder(write, "from . import helpers\nNUMBER = helpers.NUMBER")
    [before] = classes(folder).values()
    package = sys.modules[before.__module__.rpartition(".")[0]]
    helper = vars(package)["helpers"]
    write("mine/helpers.py", "NUMBER = 2")
    write("mine/rules.py", rules("from . import helpers\nraise RuntimeError('no')"))
    with pytest.raises(OperatorMistake, match="cannot be imported"):
        classes(folder)
    assert vars(sys.modules[before.__module__])["Rules"] is before
    assert vars(package)["helpers"] is helper
    assert sys.modules[helper.__name__] is helper


def test_what_proved_to_be_of_no_use_is_taken_back_with_its_helpers(write):
    folder = a_folder(write, "from . import helpers\nNUMBER = helpers.NUMBER")
    [before] = classes(folder).values()
    known = plugin_modules()
    a_folder(write, "from . import helpers, between\nNUMBER = helpers.NUMBER", number=2)
    assert numbers(folder) == {"Rules": 2}
    bring_back(known)
    assert plugin_modules() == known
    package = sys.modules[before.__module__.rpartition(".")[0]]
    assert vars(package)["helpers"].NUMBER == 1


def test_no_bytecode_is_left_in_the_folder(write):
    folder = a_folder(write, "from .helpers import NUMBER")
    numbers(folder)
    assert not list(folder.rglob("__pycache__"))


MISTAKES = {
    "a syntax error in the helper": ("def broken(:\n", "helpers.py:1", "SyntaxError"),
    "a helper that raises": ("\n\nx = 1 / 0\n", "helpers.py:3", "ZeroDivisionError: division by zero"),
    "a helper that ends": ("import sys\nsys.exit(3)\n", "helpers.py:2", "SystemExit: 3"),
    "a helper that needs a package": ("import no_such_package\n", "helpers.py:1", "No module named 'no_such_package'"),
    "a helper without the name": ("OTHER = 1\n", "rules.py:2", "cannot import name 'NUMBER'"),
    "a helper that is not there": (None, "rules.py:2", "No module named"),
}


@pytest.mark.parametrize(("helper", "place", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_by_the_file_and_line_where_it_is(write, monkeypatch, helper, place, message):
    file = write("mine/rules.py", rules("from .helpers import NUMBER"))
    if helper is not None:
        write("mine/helpers.py", helper)
    monkeypatch.chdir(file.parent.parent)
    with pytest.raises(OperatorMistake, match=r"mine/rules\.py cannot be imported") as mistake:
        Registry().add_path("mine/rules.py")
    [problem] = mistake.value.problems
    assert problem.path == f"mine/{place}"
    assert message in problem.message


def test_an_import_of_a_neighbour_by_its_bare_name_gets_a_hint_how_to_write_it(write):
    write("mine/helpers.py", "NUMBER = 1")
    file = write("mine/rules.py", rules("from helpers import NUMBER"))
    with pytest.raises(OperatorMistake) as mistake:
        Registry().add_path(str(file))
    [problem] = mistake.value.problems
    assert problem.path == f"{file}:2"
    assert "No module named 'helpers'; a file beside it is imported as `from .helpers import …`" in problem.message


def test_files_whose_names_no_import_statement_can_spell_are_plugin_files_too(write):
    write("my-plugins/helpers.py", "NUMBER = 1")
    write("my-plugins/a-rule.py", rules("from .helpers import NUMBER", name="A"))
    folder = write("my-plugins/b.rule.py", rules("from .helpers import NUMBER", name="B")).parent
    assert numbers(folder) == {"A": 1, "B": 1}


def test_a_folder_of_helpers_alone_holds_no_plugin(write):
    folder = write("mine/helpers.py", "NUMBER = 1").parent
    with pytest.raises(OperatorMistake, match="holds no plugin"):
        Registry().add_path(str(folder))


def test_a_fault_is_named_by_the_line_of_the_helper_that_raised_it(write):
    write("mine/helpers.py", "def number(pod):\n    return 1 / len(pod.labels)\n")
    text = rules("from .helpers import number", "0").replace("return 0", "return number(pod)")
    file = write("mine/rules.py", text)
    [entry] = Registry().add_path(str(file))
    decision = a_cluster(a_node("a"), a_node("b"), plugins=[a_plugin(entry.cls)]).decide(a_pod())
    assert decision.fault is not None
    assert decision.fault.raised_at == f"{file.parent / 'helpers.py'}:2"
