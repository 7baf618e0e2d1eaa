"""Browser tests of the page: a real Chromium on a real `mooring up`. Every test here carries the marker `real`."""

import contextlib
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext
from tests.real_browser.browser import Tab, a_context, a_tab_in, artefacts, chromium
from tests.real_browser.clusters import shop
from tests.real_browser.served import Served, served_by
from tests.real_kubectl.conftest import Up, mooring_up

HERE = Path(__file__).parent
FAILED = pytest.StashKey[bool]()


class SharedBrowser:
    """A Chromium that is started for the first test, and again if it was closed; and a context that tabs share."""

    def __init__(self) -> None:
        self._open = contextlib.ExitStack()
        self._browser: Browser | None = None
        self._context: BrowserContext | None = None

    def running(self) -> Browser:
        if self._browser is None or not self._browser.is_connected():
            self.close()
            self._browser = self._open.enter_context(chromium())
        return self._browser

    def context(self) -> BrowserContext:
        browser = self.running()
        if self._context is None:
            self._context = a_context(browser)
        return self._context

    def close(self) -> None:
        self._browser = self._context = None
        self._open.close()


SHARED = SharedBrowser()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is collected here, and run it in one piece: one browser serves all of it.

    The hook is handed the tests of every folder. Among those of this one, their random order stays; those without a
    browser come last.
    """
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    if not ours:
        return
    for item in ours:
        item.add_marker(pytest.mark.real)
    place = items.index(ours[0])
    others = [item for item in items if item not in set(ours)]
    items[:] = [*others[:place], *sorted(ours, key=lambda item: not _needs_browser(item)), *others[place:]]


def _needs_browser(item: pytest.Item | None) -> bool:
    return "browser" in getattr(item, "fixturenames", ())


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close the browser where the next test has none: Playwright occupies the event loop of this thread."""
    if not _needs_browser(nextitem) or (nextitem is not None and not nextitem.path.is_relative_to(HERE)):
        SHARED.close()


def pytest_sessionfinish() -> None:
    SHARED.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure for the tab's fixture, which still has the page."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture
def browser() -> Browser:
    """The one of all tests here."""
    return SHARED.running()


@pytest.fixture(scope="session")
def cluster() -> Iterator[Up]:
    """One running `mooring up` with the shop, for all tests that leave its nodes and Deployments as they found them."""
    with mooring_up("--cluster=shop.yaml", "--web", files={"shop.yaml": shop()}) as running:
        yield running


@pytest.fixture(scope="session")
def shop_page(cluster: Up) -> Served:
    """The page of that cluster, by the link that `mooring up` has printed."""
    return served_by(cluster.mooring)


@pytest.fixture
def tab(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """A tab in which nothing may go wrong. A failed test leaves a picture of it."""
    assert browser.is_connected()
    with a_tab_in(SHARED.context()) as tab:
        yield tab
        if request.node.stash.get(FAILED, False):
            tab.picture(f"failed-{request.node.name}")
        assert tab.unexpected() == [], f"see also {artefacts()}"
