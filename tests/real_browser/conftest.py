"""Browser tests of the page: a real Chromium on a real `mooring up`. Every test here carries the marker `real`."""

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser
from tests.real_browser.browser import Tab, a_tab, artefacts, chromium
from tests.real_browser.clusters import shop
from tests.real_browser.served import Served, served_by
from tests.real_kubectl.conftest import Up, mooring_up

HERE = Path(__file__).parent
FAILED = pytest.StashKey[bool]()


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is collected here; the hook is handed the tests of every folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember a failure for the tab's fixture, which still has the page."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


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
    with a_tab(browser) as tab:
        yield tab
        if request.node.stash.get(FAILED, False):
            tab.picture(f"failed-{request.node.name}")
        assert tab.unexpected() == [], f"see also {artefacts()}"
