"""Every view, light and dark: accessible, without a message in the console, and as a picture.

The pictures of README and docs are made here: `make screenshots` writes them into docs/images.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.real_browser.browser import ROOT, SCHEMES, Scheme, Tab, a_tab
from tests.real_browser.served import Served, settled
from tests.real_browser.test_explanations import pod_of
from tests.real_kubectl.conftest import Up

VIEWS = {
    "map": "/map",
    "map-zones": "/map?color=zone&group=zone",
    "map-filter": "/map?color=taints&filter=nvidia.com%2Fgpu.free%3E0",
    "queue": "/queue",
    "live": "/live",
    "pending-pod": "/pods/data/{warehouse}",
    "bound-pod": "/pods/shop/{frontend}",
    "why-not": "/pods/shop/{frontend}?why-not=gpu-1",
    "node": "/nodes/data-1",
    "what-if": "/what-if",
    "what-if-pod": "/what-if?pod=data%2F{warehouse}",
    "compare": "/compare",
    "time": "/time",
    "missing": "/no-such-view",
}
DOCS = {
    "map": SCHEMES,
    "queue": ("light",),
    "pending-pod": ("light",),
    "bound-pod": ("dark",),
    "node": ("light",),
    "what-if": ("light",),
}
"""What README and docs show."""


def address_of(view: str, cluster: Up) -> str:
    apps = {"warehouse": "data", "frontend": "shop"}
    return re.sub(r"\{(\w+)\}", lambda found: pod_of(cluster, apps[found[1]], found[1]), VIEWS[view])


def for_docs(view: str, scheme: Scheme) -> Path | None:
    wanted = os.environ.get("UPDATE_SCREENSHOTS") and scheme in DOCS.get(view, ())
    return ROOT / "docs" / "images" / f"{view}-{scheme}.png" if wanted else None


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_accessible(tab: Tab, shop_page: Served, cluster: Up, view: str) -> None:
    shop_page.open(tab, address_of(view, cluster))
    for scheme in SCHEMES:
        # As the system's own switch at nightfall: the page follows without being loaded again.
        tab.page.emulate_media(color_scheme=scheme)
        expect(tab.page.locator("html")).to_have_attribute("data-theme", scheme)
        settled(tab)
        tab.picture(f"{view}-{scheme}", also=for_docs(view, scheme))

        assert tab.accessibility_problems() == []
        assert overflow(tab.page) <= 0


@pytest.mark.parametrize("view", ["map", "queue", "pending-pod", "bound-pod", "node", "what-if", "compare"])
def test_a_view_fits_a_phone(browser: Browser, shop_page: Served, cluster: Up, view: str) -> None:
    with a_tab(browser, viewport={"width": 390, "height": 844}, has_touch=True) as tab:
        shop_page.open(tab, address_of(view, cluster))
        tab.picture(f"{view}-phone")

        assert overflow(tab.page) <= 0
        names = tab.page.locator(".table-wrap .name")
        assert all(names.nth(at).evaluate("name => name.getClientRects().length") == 1 for at in range(names.count()))
        assert tab.unexpected() == []


@pytest.mark.parametrize("view", ["map", "pending-pod"])
def test_a_view_prints_on_white_paper_without_controls(tab: Tab, shop_page: Served, cluster: Up, view: str) -> None:
    tab.page.emulate_media(color_scheme="dark")
    shop_page.open(tab, address_of(view, cluster))
    tab.page.emulate_media(media="print", color_scheme="dark")

    expect(tab.page.get_by_role("navigation")).to_be_hidden()
    expect(tab.page.locator("#theme")).to_be_hidden()
    assert tab.page.evaluate("getComputedStyle(document.body).backgroundColor") in (
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    )
    tab.picture(f"{view}-print")
    assert tab.page.pdf()[:5] == b"%PDF-"


def test_the_colour_scheme_can_be_switched(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)
    html = tab.page.locator("html")
    expect(html).to_have_attribute("data-theme", "light")

    switch = tab.page.get_by_role("button", name=re.compile("Colour scheme"))
    switch.click()
    switch.click()

    expect(html).to_have_attribute("data-theme", "dark")
    tab.page.reload()
    expect(html).to_have_attribute("data-theme", "dark")


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found
