"""Changes of the cluster from the page: offered only with --allow-actions, confirmed first, and then done."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from tests.real_browser.browser import Tab
from tests.real_browser.served import Served, page_of
from tests.real_browser.test_explanations import pod_of
from tests.real_browser.test_what_if import POD
from tests.real_kubectl.conftest import Up

NODE = "data-6"
ACTIONS = ("Cordon", "Delete pod", "Create these pods")


@pytest.fixture(scope="module")
def acting_page(cluster: Up) -> Iterator[Served]:
    with page_of(cluster, "--allow-actions") as served:
        yield served


def offered(page: Page) -> list[str]:
    """The actions that the view has buttons for."""
    return [name for name in ACTIONS if page.get_by_role("button", name=name, exact=True).count()]


def test_a_page_offers_actions_only_where_they_are_allowed(
    tab: Tab, shop_page: Served, acting_page: Served, cluster: Up
) -> None:
    views = [f"/nodes/{NODE}", f"/pods/data/{pod_of(cluster, 'data', 'warehouse')}", "/what-if"]
    for view, action in zip(views, ACTIONS, strict=True):
        shop_page.open(tab, view)
        assert offered(tab.page) == []
        acting_page.open(tab, view)
        assert offered(tab.page) == [action]
    assert tab.accessibility_problems() == []


def test_a_node_is_cordoned_after_a_confirmation(tab: Tab, acting_page: Served, cluster: Up) -> None:
    acting_page.open(tab, f"/nodes/{NODE}")
    page = tab.page

    page.get_by_role("button", name="Cordon", exact=True).click()
    expect(page.get_by_text(f"Cordon {NODE}?")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(f"Cordon {NODE}?")).to_have_count(0)
    assert cluster.json("get", "node", NODE)["spec"].get("unschedulable") is None

    page.get_by_role("button", name="Cordon", exact=True).click()
    tab.picture("confirm-cordon-light")
    assert tab.accessibility_problems() == []
    page.get_by_role("button", name="Cordon", exact=True).click()
    expect(page.locator("main")).to_contain_text("It is cordoned")
    assert cluster.json("get", "node", NODE)["spec"]["unschedulable"] is True

    page.get_by_role("button", name="Uncordon", exact=True).click()
    page.get_by_role("button", name="Uncordon", exact=True).click()
    expect(page.locator("main")).not_to_contain_text("It is cordoned")
    assert cluster.json("get", "node", NODE)["spec"].get("unschedulable") is None


def test_a_pod_of_a_what_if_is_created_and_deleted_again(tab: Tab, acting_page: Served, cluster: Up) -> None:
    acting_page.open(tab, "/what-if")
    page = tab.page
    page.locator("#what-if-pods").fill((POD % "250m").replace("imagined", "wanted"))
    expect(page.locator("#results")).to_contain_text("default/wanted")

    page.get_by_role("button", name="Create these pods").click()
    page.get_by_role("button", name="Create these pods").click()
    expect(page.get_by_text("Create these pods: done")).to_be_visible()
    cluster.run("wait", "--for=condition=PodScheduled", "pod/wanted", "--timeout=60s")

    acting_page.open(tab, "/pods/default/wanted")
    expect(page.locator("#summary")).to_contain_text("It runs on")
    page.get_by_role("button", name="Delete pod").click()
    page.get_by_role("button", name="Delete pod").click()
    cluster.run("wait", "--for=delete", "pod/wanted", "--timeout=60s")


def test_a_refusal_of_the_api_server_is_shown_beside_the_button(tab: Tab, acting_page: Served) -> None:
    tab.allow("status of 4(00|22)")
    acting_page.open(tab, "/what-if")
    page = tab.page
    page.locator("#what-if-pods").fill((POD % "250m").replace("imagined", "NOT-A-NAME"))

    page.get_by_role("button", name="Create these pods").click()
    page.get_by_role("button", name="Create these pods").click()

    expect(page.get_by_role("alert").filter(has_text="the API server refused")).to_be_visible()
