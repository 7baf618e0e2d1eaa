"""The tabs of these tests notice what they are there to notice."""

import http.server
import threading
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser
from tests.real_browser.browser import Tab, a_tab, frames_while

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'"


class Pages(http.server.BaseHTTPRequestHandler):
    """Serves the pages below, those under /strict with a strict policy."""

    pages: dict[str, str] = {}

    def do_GET(self) -> None:
        body = self.pages.get(self.path)
        self.send_response(200 if body is not None else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        if self.path.startswith("/strict"):
            self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write((body or "").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Pages) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


HEAD = '<!doctype html><html lang="en"><title>Test</title><link rel="icon" href="data:,">'
PROBLEMS = {
    "/console": ("<script>console.error('no such node')</script>", "console error: no such node"),
    "/uncaught": ("<script>undefined.name</script>", "uncaught: "),
    "/dialog": ("<script>alert('injected')</script>", "dialog: injected"),
    "/window": ("<script>window.open('/quiet')</script>", "window: "),
    "/strict-script": ("<script>alert('injected')</script>", "Content Security Policy"),
    "/strict-handler": ("<img src='data:,' onerror='alert(1)'>", "Content Security Policy"),
    "/strict-style": ("<p style='color: red'>text", "Content Security Policy"),
    "/elsewhere": ("<script>fetch('http://mooring.invalid/')</script>", "request to another host: "),
    "/missing": ("<script src='/absent.js'></script>", "404"),
}
Pages.pages = {path: HEAD + body for path, (body, _) in PROBLEMS.items()}
Pages.pages["/quiet"] = HEAD + "<main><h1>Nodes</h1><p>three</main>"
Pages.pages["/unlabelled"] = HEAD + "<main><h1>Nodes</h1><input><p style='color: #ddd; background: #fff'>three</main>"


@pytest.mark.parametrize(("path", "problem"), [(path, problem) for path, (_, problem) in PROBLEMS.items()])
def test_a_tab_records_what_goes_wrong(browser: Browser, origin: str, path: str, problem: str) -> None:
    with a_tab(browser) as tab:
        tab.page.goto(origin + path, wait_until="networkidle")

        assert any(problem in each for each in tab.problems), tab.problems
        tab.allow(".")
        assert tab.unexpected() == []


def test_a_quiet_page_has_no_problems(tab: Tab, origin: str) -> None:
    tab.page.goto(f"{origin}/quiet", wait_until="networkidle")

    assert tab.problems == []
    assert tab.accessibility_problems() == []
    assert frames_while(tab.page, lambda: tab.page.wait_for_function("window.frameTimes.length > 3"))


def test_the_accessibility_check_finds_fields_without_names_and_pale_text(tab: Tab, origin: str) -> None:
    tab.page.goto(f"{origin}/unlabelled", wait_until="networkidle")

    found = "\n".join(tab.accessibility_problems())
    assert "label (critical)" in found
    assert "color-contrast (serious)" in found
