"""Tokens and connections: a wrong token, a link pasted later, a server that goes and comes back."""

import re

from playwright.sync_api import expect
from tests.real_browser.browser import Tab
from tests.real_browser.served import Served, page_of, settled
from tests.real_kubectl.conftest import Up

UNREACHABLE = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


def test_without_a_token_the_page_shows_how_to_get_one(tab: Tab, shop_page: Served) -> None:
    tab.allow("status of 401")

    tab.page.goto(shop_page.origin)

    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Open the page by its link")
    assert tab.page.locator("#map").count() == 0


def test_a_wrong_token_is_refused_and_the_link_can_be_pasted(tab: Tab, shop_page: Served) -> None:
    tab.allow("status of 401")
    tab.page.goto(f"{shop_page.origin}/#token=wrong")
    expect(tab.page.locator("main")).to_contain_text("does not accept the token")
    assert tab.accessibility_problems() == []

    tab.page.get_by_label("paste the link").fill(shop_page.link)
    tab.page.get_by_role("button", name="Open").click()

    settled(tab)
    expect(tab.page.locator("#match-count")).to_have_text(re.compile(r"\d+ nodes"))


def test_a_server_that_ends_is_reported_and_one_that_returns_is_used(tab: Tab, cluster: Up) -> None:
    tab.allow(UNREACHABLE)
    with page_of(cluster) as first:
        first.open(tab)
        port = first.origin.rpartition(":")[2]
        first.program.end()
    page = tab.page

    expect(page.locator("#banner")).to_contain_text("Connection lost")
    expect(page.locator("#connection")).to_have_text("Offline")
    # What was there stays.
    expect(page.locator("#match-count")).to_have_text(re.compile(r"\d+ nodes"))
    tab.picture("connection-lost-light")
    assert tab.accessibility_problems() == []

    # Another process has another token: the page reports that, and takes the link.
    tab.allow("status of 401")
    with page_of(cluster, f"--port={port}") as second:
        page.get_by_role("button", name="Try now").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Open the page by its link")
        page.get_by_label("paste the link").fill(second.link)
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#connection")).to_have_text("Live")


def test_a_connection_that_breaks_is_made_again(tab: Tab, shop_page: Served) -> None:
    tab.allow("ERR_INTERNET_DISCONNECTED|ERR_FAILED|ERR_CONNECTION")
    page = tab.page
    # A stream that ends at once, as behind a proxy that restarts.
    page.route("**/api/v1/stream", lambda route: route.abort())
    page.goto(shop_page.link)
    expect(page.locator("#banner")).to_contain_text("Connection lost")
    expect(page.locator(".map-side .decisions")).to_have_text("Decisions appear here once the page is connected again.")

    page.unroute("**/api/v1/stream")
    page.get_by_role("button", name="Try now").click()

    expect(page.locator("#connection")).to_have_text("Live")
    expect(page.locator("#banner")).to_be_hidden()
