"""The page as a user gets it: `mooring web` on an embedded cluster or on a file, and the link that it prints."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from playwright.sync_api import expect
from tests.cli.programs import Program, private_home
from tests.real_browser.browser import Tab
from tests.real_kubectl.conftest import Up

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#token=(\S+)")


@dataclass
class Served:
    """A running `mooring web`."""

    program: Program
    origin: str
    token: str

    @property
    def link(self) -> str:
        return f"{self.origin}/#token={self.token}"

    def open(self, tab: Tab, view: str = "/map") -> None:
        """Show a view in a tab, as the printed link does, and wait until the cluster is there."""
        tab.page.goto(f"{self.link}&to={quote(view)}")
        settled(tab)


def settled(tab: Tab) -> None:
    """Wait until the page has the cluster and a view, and loads nothing."""
    tab.page.wait_for_selector("html[data-connection=live], html[data-connection=static]")
    tab.page.wait_for_selector("main h1", state="attached")
    # Not wait_for_function, which evaluates a string: the page's policy stops that.
    expect(tab.page.locator("main .spinner, main [aria-busy=true]")).to_have_count(0)


@contextlib.contextmanager
def mooring_web(*options: str, home: Path, files: Path | None = None) -> Iterator[Served]:
    """Start `mooring web` with these options; end it as a user does."""
    with Program("web", *options, home=home, cwd=files) as program:
        yield served_by(program)
        if program.process.poll() is None:
            assert program.end() == 0, program.written()
        assert "Traceback" not in program.written()


def served_by(program: Program) -> Served:
    """The page whose link a program prints."""
    found = LINK.search(program.until_line(lambda line: LINK.search(line) is not None, what="a link"))
    assert found is not None
    return Served(program, found[1], found[2])


@contextlib.contextmanager
def page_of_file(path: Path) -> Iterator[Served]:
    with private_home() as home, mooring_web(f"--cluster={path}", home=home) as served:
        yield served


@contextlib.contextmanager
def page_of(up: Up, *options: str) -> Iterator[Served]:
    """The page of a running `mooring up`, by a server of the test's own."""
    with mooring_web(f"--kubeconfig={up.kubeconfig}", *options, home=up.kubeconfig.parent) as served:
        yield served
