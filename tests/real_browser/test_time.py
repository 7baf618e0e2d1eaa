"""Scroll back through recorded decisions, and replay them with another configuration."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.cli.programs import private_home
from tests.real_browser.browser import SCHEMES, Tab
from tests.real_browser.clusters import shop
from tests.real_browser.served import Served, mooring_web
from tests.real_browser.test_what_if import MOST_ALLOCATED
from tests.real_kubectl.conftest import mooring_up


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The page of what a scheduler recorded while the shop's pods were placed."""
    file = tmp_path_factory.mktemp("recorded") / "decisions.mooring"
    with mooring_up("--cluster=shop.yaml", f"--record={file}", files={"shop.yaml": shop()}) as up:
        for namespace, deployment in (("shop", "frontend"), ("shop", "cart"), ("data", "reports")):
            up.in_namespace(namespace).run(
                "wait", "--for=condition=Available", f"deployment/{deployment}", "--timeout=60s"
            )
    with private_home() as home, mooring_web(f"--recording={file}", home=home) as served:
        yield served


def test_the_slider_scrolls_back_to_the_first_decision(tab: Tab, recorded: Served) -> None:
    recorded.open(tab, "/time")
    page = tab.page
    expect(page.locator("#time-label")).to_contain_text(re.compile(r"Decision (\d+) of \1"))

    page.locator("#time-at").focus()
    page.keyboard.press("Home")

    expect(page.locator("#time-label")).to_contain_text("Decision 1 of")
    expect(page.locator("#decision-head")).to_be_visible()
    page.get_by_role("button", name="Later decision").click()
    expect(page.locator("#time-label")).to_contain_text("Decision 2 of")
    expect(page).to_have_url(re.compile(r"#/time\?at=1$"))


def test_an_address_reproduces_the_moment(tab: Tab, recorded: Served) -> None:
    recorded.open(tab, "/time?at=3")

    expect(tab.page.locator("#time-label")).to_contain_text("Decision 4 of")
    expect(tab.page.locator("#decision-head")).to_contain_text(re.compile("was placed on|found no node"))


def test_a_replay_lists_what_another_configuration_would_have_done(tab: Tab, recorded: Served) -> None:
    recorded.open(tab, "/time")
    page = tab.page

    page.get_by_label("KubeSchedulerConfiguration").fill(MOST_ALLOCATED)
    page.get_by_role("button", name="Replay").click()

    expect(page.locator("#replay-outcome")).to_contain_text("would have differed")
    expect(page.get_by_role("table", name="Decisions that would have differed")).to_be_visible()


def test_a_wrong_configuration_is_reported_beside_it(tab: Tab, recorded: Served) -> None:
    tab.allow("status of 400")
    recorded.open(tab, "/time")
    page = tab.page

    page.get_by_label("KubeSchedulerConfiguration").fill("kind: Pod")
    page.get_by_role("button", name="Replay").click()

    expect(page.locator("#replay-problem")).to_contain_text(re.compile(r"\w"))


def test_the_time_view_is_accessible(tab: Tab, recorded: Served) -> None:
    recorded.open(tab, "/time?at=5")
    for scheme in SCHEMES:
        tab.page.emulate_media(color_scheme=scheme)
        expect(tab.page.locator("html")).to_have_attribute("data-theme", scheme)
        expect(tab.page.locator("#decision-head")).to_be_visible()

        tab.picture(f"time-recorded-{scheme}")
        assert tab.accessibility_problems() == []
