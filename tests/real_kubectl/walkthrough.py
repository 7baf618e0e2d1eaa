"""Runs the commands of a page with examples, and compares their output with the output that the page shows.

A `console` block is a terminal: `$ ` begins a command, the lines below it are what it prints. Programs that stay
(schedulers, clusters) run until the end of the walk; a `text` block shows lines that one of them writes. A `python` or
`yaml` block whose first line is a comment with a file name is saved as that file. Lines are compared without what
differs from run to run: times, ages, ports, addresses and generated names. `…` stands for lines, or for
the rest of a line, that are left out.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.programs import Program, clean_environment, private_home
from tests.real_kubectl.conftest import TIMEOUT_SECONDS, real_program

ROOT = Path(__file__).parents[2]
TERMINALS = {
    "mooring up": "cluster",
    "mooring cluster": "cluster",
    "mooring run": "scheduler",
    "python examples/": "scheduler",
}
"""Commands that stay, and the terminal they stay in: the next one there means Ctrl-C for the one before."""
VARYING = (
    (r"[IWE]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+", "TIME"),
    (r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\dZ?", "TIME"),
    (r"(?<![\w.])(\d+m)?\d+(\.\d+)?(ms|s)\b", "AGE"),
    (r"-[0-9a-z]{8,10}-[0-9a-z]{5}\b", "-GENERATED"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\b10\.\d+\.\d+\.\d+\b", "ADDRESS"),
    (r"Image size: \d+", "Image size: N"),
    (r"\S*mooring\.kubeconfig", "KUBECONFIG"),
    (r"(x)\d+( over)", r"\1N\2"),
    (r"\s+", " "),
)


FILE_NAME = re.compile(r"# (\w[\w.-]*\.(?:py|yaml))$", re.M)


def comparable(line: str) -> str:
    for pattern, replacement in VARYING:
        line = re.sub(pattern, replacement, line)
    return line.strip()


@dataclass
class Step:
    """A command and its output; without a command, a file to save, or lines that a running program writes meanwhile."""

    command: str
    shows: list[str] = field(default_factory=list)
    file: str = ""
    text: str = ""


def steps(page: Path) -> Iterator[Step]:
    text = page.read_text(encoding="utf-8")
    for language, block in re.findall(r"^```(console|text|python|yaml)\n(.*?)^```$", text, re.M | re.S):
        if language in ("python", "yaml"):
            if name := FILE_NAME.match(block):
                yield Step("", file=name[1], text=block)
            continue
        step = Step("")
        for line in block.replace("\\\n", " ").splitlines():
            if language == "console" and line.startswith("$ "):
                if step.command:
                    yield step
                step = Step(line[2:].partition("  #")[0].strip())
            elif line.strip() and line.strip() != "…":
                step.shows.append(comparable(line))
        yield step


class Walk:
    """The terminal of a reader: a folder with the examples, exported variables, programs that stay."""

    def __init__(self, home: Path, running: contextlib.ExitStack) -> None:
        self.home = home
        self.programs: list[Program] = []
        self._terminals: dict[str, Program] = {}
        self._running = running
        self._exports: list[str] = []
        folders = [str(Path(sys.executable).parent), str(real_program("kubectl").parent)]
        self._path = f"export PATH={shlex.quote(':'.join(folders))}:$PATH"

    def take(self, step: Step) -> None:
        if step.file:
            (self.home / step.file).write_text(step.text, encoding="utf-8")
        elif not step.command:
            for line in step.shows:
                self._is_written(line)
        elif step.command.startswith("export "):
            self._exports.append(step.command)
        elif step.command.startswith(tuple(TERMINALS)):
            self._stay(step)
        else:
            self._run(step)

    def end(self) -> None:
        """Ctrl-C in every terminal, the last first."""
        while self._terminals:
            self._end(self._terminals.popitem()[1])

    def _end(self, program: Program) -> None:
        assert program.end() == 0, program.written()
        assert "Traceback" not in program.written()

    def _stay(self, step: Step) -> None:
        terminal = next(name for command, name in TERMINALS.items() if step.command.startswith(command))
        self._start_in(terminal, step)

    def _start_in(self, terminal: str, step: Step) -> Program:
        if (before := self._terminals.pop(terminal, None)) is not None:
            self._end(before)
        program = Program(self._script(f"exec {step.command}"), home=self.home, program=("bash", "-c"))
        self.programs.append(self._running.enter_context(program))
        self._terminals[terminal] = program
        for line in step.shows:
            _writes(program, line)
        return program

    def _script(self, command: str) -> str:
        return "\n".join([self._path, *self._exports, command])

    def _run(self, step: Step) -> None:
        done = subprocess.run(
            ["bash", "-c", self._script(step.command)],
            cwd=self.home,
            env=clean_environment(self.home) | {"KUBERC": "off"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"$ {step.command}\nended with {done.returncode}:\n{done.stdout}"
        # In any order: events of the same second have none.
        shown = {comparable(line) for line in done.stdout.splitlines()}
        missing = [line for line in step.shows if not any(_is_shown(line, each) for each in shown)]
        assert not missing, f"$ {step.command}\ndoes not show {missing}\nbut\n{done.stdout}"

    def _is_written(self, line: str) -> None:
        """Wait until one of the running programs has written this line."""
        *others, last = self.programs
        for program in others:
            if any(_is_shown(line, comparable(written)) for written in [*program.out, *program.err]):
                return
        _writes(last, line)


def _is_shown(line: str, written: str) -> bool:
    """Whether the page shows this line of output; `…` at the end stands for the rest of it."""
    return written.startswith(line[:-1]) if line.endswith("…") else written == line


def _writes(program: Program, line: str) -> None:
    program.until_line(lambda written: _is_shown(line, comparable(written)), what=line)


@contextlib.contextmanager
def walked(page: Path) -> Iterator[Walk]:
    """Run all steps of the page; the programs that it starts run until the end of the `with` block."""
    with private_home() as home, contextlib.ExitStack() as running:
        (home / "examples").symlink_to(ROOT / "examples")
        walk = Walk(home, running)
        for step in steps(page):
            walk.take(step)
        yield walk
        walk.end()
