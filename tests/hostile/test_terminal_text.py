"""Text that others wrote reaches a terminal and a log with escapes for what a terminal obeys or does not show."""

from __future__ import annotations

import ast
import io
import json
import logging
import os
import re
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.cli.conftest import Mooring, mooring, nothing_of_the_user  # noqa: F401
from tests.hostile.bounds import REPOSITORY

from mooring.base import log
from mooring.base.documents import read_tree, written
from mooring.base.errors import ApiError, OperatorMistake, Problem
from mooring.base.visible import visible, visible_json, visible_lines
from mooring.cli import output
from mooring.deploy.writing import dump
from mooring.explain import in_full

ESCAPE_SEQUENCES = "\x1b[2J\x1b]0;owned\x07\u009b31m\u202egpj.exe\u2066\n\rE1116 forged] line"
"""Clears the screen, sets the title, colours by C1, reverses the direction, begins a line of its own."""
SELECTOR = f'device.attributes["gpu.example.com"]["{ESCAPE_SEQUENCES}"] == 1'
DECEIVING = "\x00\x08\x7f\x80\x85\x9f\u061c\u200b\u200d\u200e\u200f\u2028\u2029\u202a\u2069\ufeff\U000e0041\u00ad\u3164"
ORDINARY = "é 中文 देवनागरी עברית العربية 👍 ❤️ – … “ ” €"


def is_harmless(text: str) -> bool:
    """No character but line breaks and tabs that a terminal obeys or does not show."""
    return not [
        character
        for character in text
        if character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


def test_what_a_terminal_obeys_is_shown_as_go_shows_it():
    assert visible("\x1b[2J") == r"\x1b[2J"
    assert visible("a\nb\tc\r") == r"a\nb\tc\r"
    assert visible("\u009b\u202e\u2066\x7f") == r"\u009b\u202e\u2066\x7f"
    assert visible("\U000e0041\ud800") == r"\U000e0041\ud800"


@pytest.mark.parametrize("character", [*ESCAPE_SEQUENCES[:1], *DECEIVING])
def test_each_deceiving_character_is_shown(character: str):
    assert visible(f"a{character}b").isascii()


def test_what_has_a_shape_stays():
    assert visible(ORDINARY) == ORDINARY
    assert visible(r"C:\dir \d+ \"quoted\"") == r"C:\dir \d+ \"quoted\""


def test_emoji_that_are_joined_are_shown_with_their_joiner():
    assert visible("👩\u200d💻") == r"👩\u200d💻"


def test_a_backslash_that_looks_like_an_escape_is_doubled():
    assert visible(r"\x1b") == r"\\x1b"
    assert visible("\\\x1b") == r"\\\x1b"


texts = st.text(st.characters() | st.sampled_from("\\nrtxuU0123456789abcdef\x1b\n\u202e"))


@given(texts)
def test_no_two_texts_look_alike(text: str):
    shown = visible(text)
    assert is_harmless(shown)
    assert "\n" not in shown
    if shown == text:
        assert not re.search(r"\\[\\nrtxuU]", text)
    else:
        assert ast.literal_eval("'" + shown.replace("'", r"\'") + "'") == text


@given(texts)
def test_json_and_yaml_mean_the_same_with_escapes(text: str):
    encoded = visible_json(json.dumps({text: text}, ensure_ascii=False))
    assert is_harmless(encoded)
    assert json.loads(encoded) == {text: text}


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_yaml_that_we_write_shows_what_it_holds(text: str):
    for made in (written({"key": text, "more": [text]}), dump({"key": text, "more": [text]})):
        assert is_harmless(made)
        assert yaml.safe_load(made)["key"] == text or "\r" in text or "\x85" in text or not text.isprintable()
    assert read_tree(written({"key": text}), "f").plain() == {"key": text}


def test_text_of_several_lines_keeps_its_lines():
    assert visible_lines("a\n\tb\x1b\n") == "a\n\tb\\x1b\n"


def evidence() -> dict[str, Any]:
    rejection = {
        "plugin": "DynamicResources",
        "code": "Unschedulable",
        "reasons": [SELECTOR],
        "nodes": [ESCAPE_SEQUENCES],
        "count": 1,
    }
    decision = {
        "time": "2026-11-16T12:00:00Z",
        "node": None,
        "message": f"0/1 nodes are available: {SELECTOR}",
        "rejections": [rejection],
        "nodes": 1,
        "feasibleNodes": 0,
        "waitsFor": [{"resource": ESCAPE_SEQUENCES, "actions": ["Add"], "plugin": ESCAPE_SEQUENCES}],
    }
    return {
        "pod": f"shop/{ESCAPE_SEQUENCES}",
        "profile": ESCAPE_SEQUENCES,
        "node": None,
        "phase": "Pending",
        "condition": {"reason": "Unschedulable", "message": SELECTOR},
        "gating": {"plugin": "X", "reasons": [ESCAPE_SEQUENCES]},
        "decision": decision,
        "queue": ESCAPE_SEQUENCES,
    }


@pytest.mark.parametrize("form", ["text", "json"])
def test_explain_shows_a_selector_with_its_control_sequences(
    form: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from mooring.cli import explain
    from mooring.cli.main import cli

    def look(*_: object) -> tuple[dict[str, Any], None]:
        return evidence(), None

    monkeypatch.setattr(explain, "_look", look)
    cli.main(["explain", "web", "-o", form], standalone_mode=False)
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert len([line for line in shown.split("\n") if line.startswith("E1116")]) == 0
    if form == "json":
        found = json.loads(shown)
        assert {key: found[key] for key in evidence()} == evidence()
    else:
        assert r"\x1b[2J\x1b]0;owned\x07\u009b31m\u202egpj.exe\u2066\n\rE1116" in shown
        assert shown.count("\n") == in_full({**evidence(), **visible_evidence()}).count("\n") + 1


def visible_evidence() -> dict[str, Any]:
    from mooring.base.visible import visible_values

    found: dict[str, Any] = visible_values(evidence())
    return found


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    before, stream = log._settings.stream, io.StringIO()
    log.configure(stream=stream)
    yield stream
    log._settings.stream = before
    log.configure(format="text")


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_log_line_is_one_line_that_a_terminal_shows(form: Any, lines: io.StringIO):
    log.configure(format=form)
    log.Log("test").error(f"about {SELECTOR}", err=ValueError(ESCAPE_SEQUENCES + DECEIVING + "\ud800"), name=ORDINARY)
    written_line = lines.getvalue()
    assert is_harmless(written_line)
    assert written_line.count("\n") == 1
    assert ORDINARY in written_line
    if form == "json":
        assert json.loads(written_line)["err"] == ESCAPE_SEQUENCES + DECEIVING + "\ud800"


def test_a_traceback_of_a_library_is_one_line_of_the_log(lines: io.StringIO, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logging, "lastResort", logging.lastResort)
    log.adopt_library_logs()
    logger = logging.Logger("library")
    try:
        raise ValueError(ESCAPE_SEQUENCES)
    except ValueError:
        logger.exception("It failed for %s", ESCAPE_SEQUENCES)
    assert is_harmless(lines.getvalue())
    assert lines.getvalue().count("\n") == 1
    assert "Traceback" in lines.getvalue()


ERRORS: dict[str, BaseException] = {
    "an API server's message": ApiError(403, "Forbidden", ESCAPE_SEQUENCES),
    "a problem's path": OperatorMistake("f has 1 problem.", [Problem(ESCAPE_SEQUENCES, "is wrong", 3)]),
    "a problem's message": OperatorMistake("f has 1 problem.", [Problem("a.b", f'got "{ESCAPE_SEQUENCES}"', 3)]),
    "a summary": OperatorMistake(ESCAPE_SEQUENCES),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS.keys())
def test_an_error_begins_no_line_that_others_wrote(error: BaseException, capsys: pytest.CaptureFixture[str]):
    output.print_error(error)
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert "\nE1116" not in shown
    assert r"\x1b[2J" in shown


SHOWN = "\u009b31m\u202egpj.exe\u2066"
"""What click leaves in text for a file; it strips the sequences that begin with an escape character."""
PRINTERS: dict[str, Callable[[], None]] = {
    "a line": lambda: output.print_line(SHOWN),
    "a value in JSON": lambda: output.print_line("a ", json=json.dumps(SHOWN, ensure_ascii=False)),
    "several lines": lambda: output.print_lines(f"a\n\t{SHOWN}\n"),
    "several lines with values that were made visible": lambda: output.print_lines(SHOWN, are_values_visible=True),
    "YAML": lambda: output.print_yaml(f'a: "{SHOWN}"\n'),
    "JSON": lambda: output.print_json({"a": SHOWN}),
}


@pytest.mark.parametrize("show", PRINTERS.values(), ids=PRINTERS.keys())
def test_whatever_prints_escapes(show: Callable[[], None], capsys: pytest.CaptureFixture[str]):
    show()
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert r"\u202e" in shown.lower()


OF_A_PROCESS = """
import logging, threading
from mooring.cli import output
output.prepare()
text = {text!a}
def fail():
    raise ValueError(text)
thread = threading.Thread(target=fail, name=text)
thread.start()
thread.join()
logging.getLogger("library").error("It failed for %s", text)
output.print_line("\\u4e2d")
fail()
"""


def test_a_process_shows_what_its_threads_and_libraries_report_on_a_terminal_of_any_encoding():
    done = subprocess.run(
        [sys.executable, "-c", OF_A_PROCESS.format(text=ESCAPE_SEQUENCES)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"},
    )
    assert is_harmless(done.stderr)
    assert [line for line in done.stderr.split("\n") if line.startswith("E1116")] == []
    assert done.stderr.count("Traceback") == 2
    assert r"It failed for \x1b[2J" in done.stderr
    assert done.stdout == "\\u4e2d\n"


def test_a_crash_shows_what_was_raised(capsys: pytest.CaptureFixture[str]):
    try:
        raise ValueError(ESCAPE_SEQUENCES)
    except ValueError as error:
        output.show_crash(ValueError, error, error.__traceback__)
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert "Traceback" in shown
    assert "\nE1116" not in shown


def test_the_command_line_is_shown_too(mooring: Mooring):  # noqa: F811
    unknown = ("explain\x1b[2J\u202e",), ("explain", "web", "more\u009b\u202e"), ("explain", "--nothing\u202e")
    for arguments in (*unknown, ("config", "check", "absent\x1b[2J.yaml")):
        done = mooring(*arguments)
        assert done.code == 2
        assert is_harmless(done.err)


HOSTILE_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
"key\\e[2J\\u202e\\nError: forged": 1
profiles:
- schedulerName: "a\\e]0;owned\\a\\u009b"
  plugins: {score: {enabled: [{name: "No\\e[2Jde\\nError: forged"}]}}
"""


@pytest.mark.parametrize("command", ["check", "show", "convert"])
def test_what_a_configuration_holds_is_shown(mooring: Mooring, tmp_path: Path, command: str):  # noqa: F811
    (tmp_path / "f.yaml").write_text(HOSTILE_CONFIG)
    done = mooring("config", command, str(tmp_path / "f.yaml"))
    assert done.code == 2
    assert is_harmless(done.out + done.err)
    assert "\nError: forged" not in done.err
    assert r"\x1b[2J" in done.err


def test_the_demo_interprets_no_markup(capsys: pytest.CaptureFixture[str]):
    from mooring.cli.demo.show import Show
    from mooring.testing import a_pod

    markup = f"[red]x[/] [link=http://x]y[/link] [/nothing] {ESCAPE_SEQUENCES}"
    show = Show()
    show.step(markup)
    pod = a_pod(markup, node=markup)
    show.progress(pod)
    show.table([(pod, {"node": None, "message": markup})])
    about = {"kind": markup, "name": markup}
    show.events([{"regarding": about, "reason": markup, "note": markup, "reportingController": markup}])
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert shown.replace("\n", "").count("[link=http://x]y[/link]") >= 5


def test_a_doctor_shows_what_a_server_wrote(capsys: pytest.CaptureFixture[str]):
    from mooring.cli.doctor import _show
    from mooring.doctor.findings import bad

    _show(bad("server", ESCAPE_SEQUENCES, f"Do {ESCAPE_SEQUENCES}"))
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert "\nE1116" not in shown


def test_a_thread_that_crashes_shows_what_was_raised(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def fail() -> None:
        raise ValueError(ESCAPE_SEQUENCES)

    monkeypatch.setattr(threading, "excepthook", output._show_crash_of_thread)
    thread = threading.Thread(target=fail, name="\x1b[2J")
    thread.start()
    thread.join()
    shown = capsys.readouterr().err
    assert is_harmless(shown)
    assert "\nE1116" not in shown
    assert "ValueError" in shown


def test_a_shadow_report_is_harmless_and_means_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from mooring.scheduler.shadow.comparison import Comparison
    from mooring.scheduler.shadow.report import JsonLines

    comparison = {"why": SELECTOR, "theirs": {"message": DECEIVING + ORDINARY}}
    monkeypatch.setattr(Comparison, "as_json", lambda _: comparison)
    report = JsonLines(str(tmp_path / "report.jsonl"))
    report.write(object.__new__(Comparison))
    report.close()
    line = (tmp_path / "report.jsonl").read_text(encoding="utf-8")
    assert is_harmless(line)
    assert json.loads(line) == comparison


def test_a_line_of_what_another_scheduler_wrote_is_one_line(capsys: pytest.CaptureFixture[str]):
    output.print_line(f"DIFFERENT  shop/web  on n: {ESCAPE_SEQUENCES}")
    shown = capsys.readouterr().out
    assert is_harmless(shown)
    assert shown.count("\n") == 1


MAY_WRITE = {
    "src/mooring/cli/output.py": "the one place",
    "src/mooring/base/log.py": "the log",
    "src/mooring/bench/e2e/bare_client.py": "a program whose report, in JSON, another program reads",
    "src/mooring/simulator/sweeps/progress.py": "a library, in a notebook; it writes numbers of its own",
    "src/mooring/cli/demo/random_scheduler.py": "an example that stands alone; its error is made visible",
}


def test_nothing_else_writes_to_a_terminal():
    found = []
    sources = [*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "conformance").rglob("*.py")]
    for file in sorted(sources):
        path = file.relative_to(REPOSITORY).as_posix()
        if path in MAY_WRITE:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _writes(node.func):
                found.append(f"{path}:{node.lineno}: {ast.unparse(node)[:80]}")
            if isinstance(node, ast.Attribute) and ast.unparse(node) == "click.echo":  # as a value, too
                found.append(f"{path}:{node.lineno}: click.echo")
    assert found == [], "use mooring.cli.output"


def _writes(function: ast.expr) -> bool:
    match function:
        case ast.Name(id="print" | "Console"):
            return True
        case ast.Attribute(attr="echo" | "secho" | "echo_via_pager" | "print_exc" | "print_exception"):
            return True
        case ast.Attribute(attr="write" | "writelines", value=ast.Attribute(attr="stdout" | "stderr")):
            return True
    return False
