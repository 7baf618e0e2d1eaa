"""A real Chromium for tests: tabs that record every problem, the accessibility check, pictures as artefacts.

Playwright drives the Chromium that `scripts/install-debian` gets. A tab fails its test for what a user's console would
show: errors, scripts that the Content-Security-Policy stopped, dialogs, windows, requests to other hosts.
"""

import contextlib
import io
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Error,
    Page,
    Request,
    expect,
    sync_playwright,
)
from tests.real_apiserver.control_plane import debian_program

ROOT = Path(__file__).parents[2]
SIZE = {"width": 1280, "height": 800}
# An upper bound for a machine that is busy with other things; nothing waits this long when all is well.
PATIENCE_MILLISECONDS = 60_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)
# No connections of Chromium's own: they would fail on a machine without internet, many at a time.
QUIET = ["--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium. Playwright occupies the thread's event loop while it runs: no test of asyncio may follow."""
    program = debian_program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=QUIET, timeout=PATIENCE_MILLISECONDS)
        yield browser
        browser.close()


def artefacts() -> Path:
    """Where pictures go: beside the other files that CI keeps."""
    folder = Path(os.environ.get("CI_OUTPUT") or ROOT / "build" / "ci") / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@dataclass
class Tab:
    """A page (no cookies, no storage of others), and what went wrong in it."""

    page: Page
    problems: list[str] = field(default_factory=list)
    allowed: list[str] = field(default_factory=list)

    def allow(self, pattern: str) -> None:
        """A problem that this test causes on purpose, as a regular expression."""
        self.allowed.append(pattern)

    def unexpected(self) -> list[str]:
        """The problems that no pattern allows."""
        return [each for each in self.problems if not any(re.search(pattern, each) for pattern in self.allowed)]

    def accessibility_problems(self) -> list[str]:
        """What axe finds that is serious or critical: the rule and the elements."""
        found = Axe().run(self.page).response["violations"]
        return [
            f"{rule['id']} ({rule['impact']}): {rule['help']}: {node['html'][:200]} ({node['failureSummary']})"
            for rule in found
            if rule["impact"] in ("serious", "critical")
            for node in rule["nodes"]
        ]

    def picture(self, name: str, *, also: Path | None = None) -> Path:
        """A screenshot as an artefact, with a palette: a tenth of the bytes."""
        path = artefacts() / f"{name}.png"
        with Image.open(io.BytesIO(self.page.screenshot())) as image:
            small = image.convert("RGB").quantize(256, dither=Image.Dither.NONE)
        for file in [path, *([also] if also else [])]:
            file.parent.mkdir(parents=True, exist_ok=True)
            small.save(file, optimize=True)
        return path


def a_context(browser: Browser, *, scheme: Scheme = "light", **options: Any) -> BrowserContext:
    """A browser of its own to the pages in it: no cookies, no storage, no cache of others."""
    options = {"viewport": SIZE, "color_scheme": scheme, "reduced_motion": "reduce"} | options
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MILLISECONDS)
    return context


@contextlib.contextmanager
def a_tab(browser: Browser, *, scheme: Scheme = "light", **options: Any) -> Iterator[Tab]:
    """A tab in a context of its own. Options are those of Playwright's contexts."""
    context = a_context(browser, scheme=scheme, **options)
    with a_tab_in(context) as tab:
        yield tab
    context.close()


@contextlib.contextmanager
def a_tab_in(context: BrowserContext) -> Iterator[Tab]:
    """A tab that shares the cache of a context, and leaves no storage there.

    A load of the page costs 0.9 s of CPU time so, and 1.75 s in a context of its own.
    """
    tab = Tab(context.new_page())
    try:
        with _observed(context, tab):
            yield tab
    finally:
        with contextlib.suppress(Error):  # an error page has no storage
            tab.page.evaluate("localStorage.clear()")
        tab.page.close()
        context.clear_cookies()


@contextlib.contextmanager
def _observed(context: BrowserContext, tab: Tab) -> Iterator[None]:
    def console(message: ConsoleMessage) -> None:
        # Chromium reports here what the Content-Security-Policy stopped, too.
        if message.type in ("error", "warning"):
            tab.problems.append(f"console {message.type}: {message.text}")

    def dialog(opened: Dialog) -> None:
        tab.problems.append(f"dialog: {opened.message}")
        opened.dismiss()

    def request(sent: Request) -> None:
        host = urlsplit(sent.url).hostname
        if host not in (None, "", "127.0.0.1", "localhost"):
            tab.problems.append(f"request to another host: {sent.url}")

    def another(page: Page) -> None:
        if page is not tab.page:
            tab.problems.append(f"window: {page.url}")

    page = tab.page
    page.on("console", console)
    page.on("pageerror", lambda error: tab.problems.append(f"uncaught: {error}"))
    page.on("dialog", dialog)
    page.on("crash", lambda _: tab.problems.append("the tab crashed"))
    context.on("request", request)
    context.on("page", another)
    yield
    context.remove_listener("request", request)
    context.remove_listener("page", another)


def frames_while(page: Page, action: Callable[[], object]) -> list[float]:
    """The times between frames, in milliseconds, while something is done."""
    page.evaluate(
        """() => {
            window.frameTimes = []; window.countFrames = true;
            let last = performance.now();
            requestAnimationFrame(function frame(now) {
                frameTimes.push(now - last);
                last = now;
                if (countFrames) requestAnimationFrame(frame);
            });
        }"""
    )
    action()
    times: list[float] = page.evaluate("() => { window.countFrames = false; return window.frameTimes.slice(1) }")
    return times
