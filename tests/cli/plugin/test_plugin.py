"""`mooring plugin list`, `show`, `new` and `test`."""

from pathlib import Path

import pytest
from tests.cli.conftest import Mooring, write
from tests.cli.programs import Program, private_home


def test_the_list_has_name_points_and_origin(mooring: Mooring):
    result = mooring("plugin", "list")
    assert result.code == 0
    rows = {
        row[0]: row for row in ([cell.strip() for cell in line.split("  ") if cell] for line in result.out.splitlines())
    }
    assert rows["NAME"] == ["NAME", "EXTENSION POINTS", "FROM"]
    assert rows["NodeName"] == ["NodeName", "filter", "default"]
    assert rows["ScoreByLabel"] == ["ScoreByLabel", "score", "example"]
    assert rows["sample2"] == ["sample2", "filter, preScore", "example"]


def test_the_list_has_plugins_of_ones_own(mooring: Mooring):
    mooring("plugin", "new", "Mine")
    assert mooring("plugin", "list", "--plugins", "mine").out.splitlines()[-1].split() == [
        "Mine",
        "filter,",
        "score",
        "mine",
    ]


def test_show_has_documentation_and_arguments_with_defaults(mooring: Mooring):
    result = mooring("plugin", "show", "ScoreByLabel")
    assert result.code == 0
    assert result.out.startswith("ScoreByLabel (example)\n")
    assert "favour nodes with the higher number in a label" in result.out
    assert 'labelKey: text, default "score-by-label"' in result.out


def test_show_describes_nested_arguments_in_words(mooring: Mooring):
    out = mooring("plugin", "show", "NodeResourcesFit").out
    assert "type: one of LeastAllocated, MostAllocated, RequestedToCapacityRatio, default" in out
    assert "resources: list of ResourceSpec" in out
    assert "mooring." not in out


def test_show_reports_that_there_are_no_arguments(mooring: Mooring):
    assert "It takes no arguments." in mooring("plugin", "show", "NodeName").out


def test_an_unknown_plugin_is_guessed(mooring: Mooring):
    result = mooring("plugin", "show", "NodeNam")
    assert result.code == 2
    assert 'there is no plugin "NodeNam". Did you mean "NodeName"?' in result.err


def test_the_scaffold_runs_and_its_test_passes_as_generated(mooring: Mooring):
    made = mooring("plugin", "new", "HeadRoom")
    assert made.code == 0
    assert sorted(path.name for path in Path("head_room").iterdir()) == [
        "__init__.py",
        "head_room.py",
        "scheduler.yaml",
        "test_head_room.py",
    ]
    assert "mooring plugin test head_room/" in made.out
    tested = mooring("plugin", "test", "head_room/")
    assert "HeadRoom: keeps the contract, with the points filter, score" in tested.out
    assert "4 passed" in tested.out
    assert tested.code == 0
    checked = mooring("config", "check", "head_room/scheduler.yaml", "--plugins", "head_room/head_room.py")
    assert (checked.code, checked.err) == (0, "")


def test_a_failing_test_of_a_plugin_fails_the_trial(mooring: Mooring):
    mooring("plugin", "new", "Broken")
    with Path("broken/test_broken.py").open("a", encoding="utf-8") as file:
        file.write("\n\ndef test_never():\n    assert False\n")
    result = mooring("plugin", "test", "broken/broken.py")
    assert "1 failed" in result.out
    assert result.code == 1


def test_a_scaffold_is_never_written_over(mooring: Mooring):
    mooring("plugin", "new", "Mine")
    Path("mine/mine.py").write_text("precious", encoding="utf-8")
    result = mooring("plugin", "new", "Mine")
    assert result.code == 2
    assert "mine/mine.py exists already" in result.err
    assert Path("mine/mine.py").read_text(encoding="utf-8") == "precious"


def test_a_scaffold_goes_into_the_given_folder(mooring: Mooring):
    assert mooring("plugin", "new", "Mine", "--into", "deep/er").code == 0
    assert Path("deep/er/mine.py").exists()


@pytest.mark.parametrize("name", ["head-room", "headRoom", "1Up", "", "a/b", "../Up"])
def test_a_name_that_no_class_can_have_is_refused(mooring: Mooring, name: str):
    result = mooring("plugin", "new", name)
    assert result.code == 2
    assert 'use a Python class name such as "Headroom"' in result.err
    assert list(Path().iterdir()) == []


HEAD = "from mooring.framework import Plugin\n\n\nclass Mine(Plugin):\n"
BAD_FILES = {
    "an import that fails": (
        "import os\n\nimport no_such_thing\n",
        ["mine.py cannot be imported", "mine.py:3", "No module named 'no_such_thing'"],
    ),
    "a syntax error": ("x = 1\ndef f(:\n", ["mine.py cannot be imported", "mine.py:2", "SyntaxError"]),
    "code that raises": ("x = 1\n\ny = x / 0\n", ["mine.py:3", "ZeroDivisionError: division by zero"]),
    "no plugin": ("x = 1\n", ["mine.py holds no plugin", "mooring.framework.Plugin"]),
    "no extension point": (
        "from mooring.framework import Plugin\n\n\nclass Idle(Plugin):\n    pass\n",
        ["mine.py holds no plugin", "the method of an extension point, such as filter"],
    ),
    "a method with too few arguments": (
        HEAD + "    def filter(self, pod, node): ...\n",
        ["plugin Mine does not keep the contract", "Mine.filter", "must take (pod, node, cycle)"],
    ),
    "a method that waits where none may": (
        HEAD + "    async def score(self, pod, node, cycle): ...\n",
        ["Mine.score", "must not be async"],
    ),
    "a method that does not wait where it must": (
        HEAD + "    def bind(self, pod, node, cycle): ...\n",
        ["Mine.bind", "must be async"],
    ),
    "a misspelt point": (
        HEAD + "    def scores(self, pod, node, cycle): ...\n",
        ["mine.py:5: Mine.scores", 'Did you mean "score"?', 'Name a helper "_scores"'],
    ),
    "a misspelt point beside a good one": (
        HEAD + "    def filter(self, pod, node, cycle): ...\n    def preFilter(self, pod, cycle): ...\n",
        ["plugin Mine does not keep the contract", "mine.py:6: Mine.preFilter", 'Did you mean "pre_filter"?'],
    ),
    "a constructor that takes an unknown service": (
        HEAD + "    def __init__(self, handle: dict) -> None: ...\n    def score(self, pod, node, cycle): ...\n",
        ["Mine.__init__(handle)", "there is no service of type dict"],
    ),
    "a constructor without types": (
        HEAD + "    def __init__(self, args) -> None: ...\n    def score(self, pod, node, cycle): ...\n",
        ["Mine.__init__(args)", "has no type"],
    ),
}


@pytest.mark.parametrize(("text", "messages"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_plugin_that_cannot_work_is_refused_by_file_line_and_reason(mooring: Mooring, text: str, messages: list[str]):
    write("mine.py", text)
    for command in (["plugin", "test", "mine.py"], ["plugin", "list", "--plugins", "mine.py"]):
        result = mooring(*command)
        assert result.code == 2
        for message in messages:
            assert message in result.err


def test_all_methods_that_break_the_contract_are_reported_at_once(mooring: Mooring):
    result = mooring("plugin", "test", write("mine.py", HEAD + "    def filter(self): ...\n    def score(self): ...\n"))
    assert "Mine.filter" in result.err
    assert "Mine.score" in result.err


def test_a_name_that_is_taken_is_refused(mooring: Mooring):
    text = HEAD.replace("Mine", "NodeName") + "    def score(self, pod, node, cycle): ...\n"
    result = mooring("plugin", "test", write("mine.py", text))
    assert result.code == 2
    assert 'two plugins are called "NodeName"' in result.err


def test_a_file_that_is_not_there(mooring: Mooring):
    for path in ("missing.py", "json:Missing", "no_such_module:Thing"):
        result = mooring("plugin", "test", path)
        assert result.code == 2
        assert path in result.err


def test_a_plugin_without_tests_gets_a_hint_where_to_put_them(mooring: Mooring):
    result = mooring("plugin", "test", write("mine.py", HEAD + "    def score(self, pod, node, cycle): ...\n"))
    assert result.code == 0
    assert "There are no tests beside mine.py" in result.out


RULES = """
from mooring.framework import Cycle, CustomResource, NodeView, Objects, Plugin, Pod, ResourcePart

from .helpers import BEST

class RackSpec(ResourcePart):
    health: int

class Rack(CustomResource, group="example.com", version="v1", plural="racks"):
    spec: RackSpec

class Best(Plugin):
    def __init__(self, racks: Objects[Rack]) -> None: ...
    def score(self, pod: Pod, node: NodeView, cycle: Cycle) -> int:
        return BEST
"""
TESTS = """
from mooring.testing import a_cycle, a_node, a_plugin, a_pod

from . import helpers
from .rules import Best


def test_the_best():
    assert a_plugin(Best).score(a_pod(), a_node(), a_cycle(a_pod())) == helpers.BEST == 100
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: mine, plugins: {multiPoint: {enabled: [{name: Best}]}}}]
"""


def a_plugin_in_two_files(folder: str = "mine") -> Path:
    Path(folder).mkdir()
    write(f"{folder}/rules.py", RULES)
    write(f"{folder}/helpers.py", "BEST = 100\n")
    write(f"{folder}/test_rules.py", TESTS)
    write("config.yaml", CONFIG)
    return Path(folder)


@pytest.mark.parametrize("named", ["mine", "mine/rules.py"])
def test_a_plugin_in_two_files_works_in_every_command(mooring: Mooring, named: str):
    a_plugin_in_two_files()
    assert mooring("plugin", "list", "--plugins", named).out.splitlines()[-1].split() == ["Best", "score", named]
    assert mooring("config", "check", "config.yaml", "--plugins", named).code == 0
    assert "plural: racks" in mooring("crd", "generate", "Best", "--plugins", named).out
    tested = mooring("plugin", "test", named)
    assert (tested.code, "1 passed" in tested.out) == (0, True), tested
    written = mooring("manifests", "--config", "config.yaml", "--plugins", named)
    assert "helpers.py: |" in written.out
    assert "rules.py: |" in written.out
    assert "test_rules.py" not in written.out


@pytest.mark.parametrize("folder", ["mine", "my-plugins"])
@pytest.mark.parametrize("files", [[], ["__init__.py"]], ids=["no init file", "an init file"])
def test_tests_import_their_neighbours_as_plugin_files_do(mooring: Mooring, folder: str, files: list[str]):
    a_plugin_in_two_files(folder)
    for file in files:
        write(f"{folder}/{file}", "")
    tested = mooring("plugin", "test", folder)
    assert (tested.code, "1 passed" in tested.out) == (0, True), tested


def test_a_test_that_does_not_import_shows_where(mooring: Mooring):
    folder = a_plugin_in_two_files()
    write("mine/test_rules.py", TESTS.replace("import Best", "import Bset"))
    tested = mooring("plugin", "test", str(folder))
    assert tested.code == 1
    assert "test_rules.py cannot be imported" in tested.out
    assert "cannot import name 'Bset'" in tested.out


def test_assertions_of_such_tests_are_explained(mooring: Mooring):
    folder = a_plugin_in_two_files()
    write("mine/helpers.py", "BEST = 99\n")
    tested = mooring("plugin", "test", str(folder))
    assert tested.code == 1
    assert "99 == 100" in tested.out


def test_a_helper_below_the_folder_does_not_go_into_a_config_map(mooring: Mooring):
    a_plugin_in_two_files()
    Path("mine/below").mkdir()
    write("mine/below/helpers.py", "BEST = 100\n")
    write("mine/rules.py", RULES.replace(".helpers", ".below.helpers"))
    result = mooring("manifests", "--config", "config.yaml", "--plugins", "mine")
    assert result.code == 2
    assert "mine/below/helpers.py is in a folder of its own, which a ConfigMap cannot hold" in result.err


ASYNC_TESTS = """
import asyncio
import pytest


@pytest.fixture
def number():
    return 7


async def test_a_coroutine_runs(number):
    await asyncio.sleep(0)
    assert number == 7


async def test_a_coroutine_fails(number):
    await asyncio.sleep(0)
    assert number == 8
"""


@pytest.mark.parametrize(
    "settings", ["", "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"]
)
@pytest.mark.parametrize("with_asyncio", [True, False], ids=["with pytest-asyncio", "without"])
def test_coroutine_tests_run_without_settings(
    mooring: Mooring, monkeypatch: pytest.MonkeyPatch, settings: str, with_asyncio: bool
):
    if not with_asyncio:
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        settings = ""
    folder = a_plugin_in_two_files()
    write("mine/test_rules.py", ASYNC_TESTS)
    if settings:
        write("mine/pytest.ini", settings)
    tested = mooring("plugin", "test", str(folder))
    assert tested.code == 1
    assert "1 failed, 1 passed" in tested.out
    assert "assert 7 == 8" in tested.out
    assert "not natively supported" not in tested.out


def test_a_coroutine_test_with_a_mark_is_left_to_its_library(mooring: Mooring):
    folder = a_plugin_in_two_files()
    write("mine/test_rules.py", "import pytest\n\n\n@pytest.mark.asyncio\nasync def test_marked():\n    pass\n")
    tested = mooring("plugin", "test", str(folder))
    assert (tested.code, "1 passed" in tested.out) == (0, True), tested


def test_a_file_whose_import_does_not_return_is_named_with_its_line(tmp_path: Path):
    folder = a_plugin_in_two_files()
    write("mine/server.py", "import threading\n\nthreading.Event().wait()\n")
    with private_home() as home, Program("plugin", "test", str(folder), home=home, cwd=tmp_path) as program:
        line = program.mentions("still being imported")
    assert 'file="mine/server.py"' in line
    assert 'at="mine/server.py:3"' in line
