"""Finding plugins and building them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from mooring.base.clock import Clock, ManualClock
from mooring.base.errors import OperatorMistake
from mooring.framework import Args, Cycle, Log, Node, NodeView, Objects, Plugin, Pod, Point
from mooring.framework.contract import check_contract, needs
from mooring.framework.registry import Registry, all_object_types, args_type, build
from mooring.objects import CustomResource


class Quota(CustomResource, group="example.com", version="v1", plural="quotas"):
    pass


class WatcherArgs(Args):
    label: str = "x"


class Watcher(Plugin):
    def __init__(self, args: WatcherArgs, nodes: Objects[Node], quotas: Objects[Quota], clock: Clock) -> None:
        self.given = (args, nodes, quotas, clock)

    def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0


class Simple(Plugin):
    name = "simple"

    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return 0


def test_an_entry_has_what_the_plugin_has_and_needs():
    registry = Registry()
    registry.add(Watcher, "test")
    entry = registry.get("Watcher")
    assert entry is not None
    assert (entry.name, entry.source, entry.cls) == ("Watcher", "test", Watcher)
    assert entry.points == (Point.FILTER, Point.SCORE)
    assert entry.args is WatcherArgs
    assert entry.object_types == (Node, Quota)
    assert list(registry) == [entry]


def test_a_plugin_is_known_by_its_own_name():
    registry = Registry()
    registry.add(Simple, "test")
    assert "simple" in registry
    assert "Simple" not in registry
    assert registry.get("Simple") is None
    assert registry.closest("simpel") == "simple"
    assert registry.closest("something else") is None


def test_kinds_that_several_plugins_watch_are_named_once():
    registry = Registry()
    registry.add(Watcher, "test")
    registry.add(type("Second", (Watcher,), {}), "test")
    assert all_object_types(registry) == (Node, Quota)


def test_one_class_may_be_found_twice_and_two_classes_may_not_share_a_name():
    registry = Registry()
    registry.add(Simple, "here")
    registry.add(Simple, "here again")
    with pytest.raises(OperatorMistake, match='two plugins are called "simple"') as mistake:
        registry.add(type("Other", (Simple,), {"name": "simple"}), "there")
    assert mistake.value.problems[0].path == "there"
    assert "also in here" in mistake.value.problems[0].message


def test_a_plugin_is_built_with_what_its_constructor_takes():
    nodes, quotas, clock = object(), object(), ManualClock()
    provided: dict[Any, Any] = {WatcherArgs: WatcherArgs(), Objects[Node]: nodes, Objects[Quota]: quotas, Clock: clock}
    plugin = build(Watcher, provided.__getitem__)
    assert isinstance(plugin, Watcher)
    assert plugin.given == (WatcherArgs(), nodes, quotas, clock)
    assert isinstance(build(Simple, provided.__getitem__), Simple)


def test_a_service_that_does_not_exist_is_named():
    with pytest.raises(OperatorMistake, match="Watcher cannot be built") as mistake:
        build(Watcher, {WatcherArgs: WatcherArgs(), Clock: ManualClock()}.__getitem__)
    assert [problem.path for problem in mistake.value.problems] == [
        "Watcher.__init__(nodes)",
        "Watcher.__init__(quotas)",
    ]


def test_a_plugin_without_arguments_has_no_class_for_them():
    assert args_type(Simple) is None
    assert needs(Simple) == {}


def with_methods(**methods: Any) -> type[Plugin]:
    return type("Wrong", (Plugin,), methods)


async def awaited(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
def plain(self: Any, pod: Any, node: Any, cycle: Any) -> None: ...
def short(self: Any, pod: Any) -> None: ...
def untyped(self: Any, thing) -> None: ...
def unreadable(self: Any, thing: NoSuchType) -> None: ...  # type: ignore[name-defined]  # noqa: F821


CONTRACT: dict[str, tuple[dict[str, Any], str, str]] = {
    "too few arguments": ({"filter": short}, "Wrong.filter", "must take (pod, node, cycle) besides self"),
    "a filter that waits": ({"filter": awaited}, "Wrong.filter", "must not be async"),
    "a bind that does not": ({"bind": plain}, "Wrong.bind", "must be async"),
    "a constructor without types": (
        {"__init__": untyped, "filter": plain},
        "Wrong.__init__(thing)",
        "has no type; the type names the service",
    ),
    "a type that does not exist": ({"__init__": unreadable, "filter": plain}, "Wrong.__init__(thing)", "NoSuchType"),
}


@pytest.mark.parametrize(("methods", "path", "message"), CONTRACT.values(), ids=CONTRACT.keys())
def test_a_class_that_does_not_keep_the_contract_is_refused(methods, path, message):
    with pytest.raises(OperatorMistake, match="plugin Wrong does not keep the contract") as mistake:
        check_contract(with_methods(**methods), "wrong.py")
    (problem,) = mistake.value.problems
    assert problem.path == path
    assert message in problem.message


def test_all_breaches_of_the_contract_come_at_once():
    with pytest.raises(OperatorMistake) as mistake:
        check_contract(with_methods(filter=short, bind=plain, score=awaited), "wrong.py")
    assert len(mistake.value.problems) == 3


def test_every_wrong_parameter_of_a_constructor_comes_at_once():
    def constructor(self: Any, one, log: Log, two: int, three: NoSuchType, four) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(OperatorMistake) as mistake:
        check_contract(with_methods(__init__=constructor, filter=plain), "wrong.py")
    assert {problem.path: problem.message.split(";")[0] for problem in mistake.value.problems} == {
        "Wrong.__init__(one)": "has no type",
        "Wrong.__init__(two)": "there is no service of type int",
        "Wrong.__init__(three)": "its type cannot be read: NameError: name 'NoSuchType' is not defined",
        "Wrong.__init__(four)": "has no type",
    }


def test_unreserve_may_wait_or_not():
    check_contract(with_methods(unreserve=plain), "fine.py")
    check_contract(with_methods(unreserve=awaited), "fine.py")


PLUGIN = """
from mooring.framework import Args, Plugin

class {name}Args(Args):
    key: str = "x"

class {name}(Plugin):
    def __init__(self, args: {name}Args) -> None: ...
    def score(self, pod, node, cycle): return 0
"""


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[str, str], str]]:
    """Writes a file; what was imported from it is forgotten afterwards."""
    known = set(sys.modules)

    def write_file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    yield write_file
    for name in set(sys.modules) - known:
        del sys.modules[name]


def test_a_file_gives_the_plugins_it_defines_and_not_those_it_imports(write):
    path = write("mine.py", PLUGIN.format(name="Mine") + "\nfrom mooring.framework import Plugin as Imported\n")
    registry = Registry()
    (entry,) = registry.add_path(path)
    assert (entry.name, entry.source) == ("Mine", path)
    assert entry.args is not None
    assert entry.args.__name__ == "MineArgs"
    assert [each.name for each in registry.add_path(path)] == ["Mine"]


def test_a_folder_gives_the_plugins_of_its_files_but_not_of_tests(write, tmp_path):
    for name in ("a.py", "b.py", "test_a.py", "a_test.py", "conftest.py", "_private.py"):
        write(name, PLUGIN.format(name=f"From_{name.removesuffix('.py')}"))
    registry = Registry()
    assert [entry.name for entry in registry.add_path(str(tmp_path))] == ["From_a", "From_b"]


def test_a_class_is_found_by_module_and_name():
    registry = Registry()
    module = ModuleType("a_module_of_the_test")
    module.Simple = Simple  # type: ignore[attr-defined]
    sys.modules["a_module_of_the_test"] = module
    try:
        assert [entry.name for entry in registry.add_path("a_module_of_the_test:Simple")] == ["simple"]
        with pytest.raises(OperatorMistake, match="has no Plugin class Missing"):
            registry.add_path("a_module_of_the_test:Missing")
    finally:
        del sys.modules["a_module_of_the_test"]


BROKEN = {
    "a syntax error": ("def (:\n", "SyntaxError"),
    "an import that fails": ("\nimport no_such_module\n", "ModuleNotFoundError"),
    "a fault at the top": ("x = 1 / 0\n", "ZeroDivisionError"),
    "a script that ends": ("import sys\nsys.exit(0)\n", "SystemExit: 0"),
    "a task that is cancelled": ("import asyncio\nraise asyncio.CancelledError\n", "CancelledError"),
}


@pytest.mark.parametrize(("text", "error"), BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_does_not_import_is_reported_with_file_and_line(write, text, error):
    path = write("broken.py", text)
    with pytest.raises(OperatorMistake, match="cannot be imported") as mistake:
        Registry().add_path(path)
    (problem,) = mistake.value.problems
    assert problem.path == f"{path}:{text.count(chr(10), 0, len(text) - 1) + 1}"
    assert error in problem.message


def test_a_file_may_be_mended_and_loaded_again(write):
    path = write("mended.py", "x = 1 / 0\n")
    registry = Registry()
    with pytest.raises(OperatorMistake):
        registry.add_path(path)
    write("mended.py", PLUGIN.format(name="Mended"))
    assert [entry.name for entry in registry.add_path(path)] == ["Mended"]


def test_a_path_without_plugin_is_refused(write, tmp_path):
    with pytest.raises(OperatorMistake, match="holds no plugin"):
        Registry().add_path(write("empty.py", "x = 1\n"))
    with pytest.raises(OperatorMistake, match="no such plugin file or folder"):
        Registry().add_path(str(tmp_path / "missing.py"))
    with pytest.raises(OperatorMistake, match="cannot be imported"):
        Registry().add_path("no_such_module:Plugin")


def test_installed_packages_offer_plugins_by_entry_point(monkeypatch):
    module = ModuleType("a_package_of_the_test")
    defined = type("Offered", (Simple,), {"__module__": module.__name__, "name": "Offered"})
    module.Offered = defined  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)

    def offering(value: str) -> Registry:
        points = EntryPoints([EntryPoint("any", value, "mooring.plugins")])
        monkeypatch.setattr("importlib.metadata.entry_points", lambda **wanted: points.select(**wanted))
        registry = Registry()
        registry.add_entry_points()
        return registry

    by_class = offering("a_package_of_the_test:Offered").get("Offered")
    assert by_class is not None
    assert by_class.source == "package a_package_of_the_test"
    assert "Offered" in offering("a_package_of_the_test")
    with pytest.raises(OperatorMistake, match="package no_such_package cannot be imported"):
        offering("no_such_package")


def test_a_log_is_a_service_like_any_other():
    class Logged(Plugin):
        def __init__(self, log: Log) -> None: ...
        def filter(self, pod: Pod, node: NodeView, cycle: Cycle) -> None: ...

    assert needs(Logged) == {"log": Log}
