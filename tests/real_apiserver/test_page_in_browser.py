"""The shared page in a browser, over TLS: users of a real API server sign in, and see and do what its RBAC allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.control_plane import ADMIN, POWERLESS
from tests.real_apiserver.test_web import a_pod, shop, started
from tests.real_browser.browser import Tab, a_tab, chromium
from tests.real_browser.served import settled

__all__ = ["shop"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    """The certificate is of an authority that the browser does not know."""
    with a_tab(browser, ignore_https_errors=True) as tab:
        tab.allow("status of 40[13]")
        yield tab
        assert tab.unexpected() == []


def sign_in(tab: Tab, port: int, user: str, view: str = "/map") -> None:
    tab.page.goto(f"https://127.0.0.1:{port}/#{view}")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    tab.page.get_by_label("Token of the cluster").fill(f"token-of-{user}")
    tab.page.get_by_role("button", name="Sign in").click()


def test_a_user_signs_in_with_a_token_and_signs_out(cluster: Cluster, tab: Tab) -> None:
    cluster.nodes(2)
    page, _ = started(cluster)
    cluster.until(lambda: page.send(ADMIN, "cluster")[1]["counts"]["nodes"] == 2, what="both nodes")

    sign_in(tab, page.port, "unknown")
    expect(tab.page.locator("main")).to_contain_text("The cluster does not accept this token")
    tab.picture("sign-in-light")
    assert tab.accessibility_problems() == []
    tab.page.get_by_label("Token of the cluster").fill(f"token-of-{ADMIN}")
    tab.page.get_by_role("button", name="Sign in").click()
    settled(tab)
    expect(tab.page.locator("#match-count")).to_have_text("2 nodes")
    expect(tab.page.locator("#connection")).to_have_text("Live")
    expect(tab.page.get_by_role("contentinfo")).to_contain_text("Signed in as admin")
    assert tab.accessibility_problems() == []

    tab.page.get_by_role("button", name="Sign out").click()
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Sign in")
    assert tab.page.evaluate("sessionStorage.length + localStorage.length") == 0


def test_a_user_without_rights_sees_which_are_needed(cluster: Cluster, tab: Tab) -> None:
    cluster.nodes(1)
    cluster.pod("classified")
    page, _ = started(cluster, "--allow-actions")
    cluster.until(lambda: page.send(ADMIN, "cluster")[1]["counts"]["pods"] == 1, what="the pod")

    sign_in(tab, page.port, POWERLESS)
    expect(tab.page.get_by_role("alert")).to_contain_text(
        'User "powerless" may not list nodes; a ClusterRole that allows it'
    )
    tab.picture("no-rights-light")
    assert tab.accessibility_problems() == []
    tab.page.goto(f"https://127.0.0.1:{page.port}/#/queue")
    expect(tab.page.get_by_role("status").first).to_have_text(
        "0 pending pods, without those of 1 namespace whose pods you may not list"
    )
    expect(tab.page.locator("main")).to_contain_text("Every pod that you may list has a node.")
    tab.page.goto(f"https://127.0.0.1:{page.port}/#/pods/default/classified")
    expect(tab.page.get_by_role("alert")).to_contain_text('User "powerless" may not list pods in namespace "default"')
    assert tab.page.get_by_role("button", name="Delete pod").count() == 0


@pytest.mark.usefixtures("shop")
def test_an_action_that_the_user_may_not_do_is_refused_by_the_api_server(cluster: Cluster, tab: Tab) -> None:
    cluster.nodes(1)
    cluster.api.create("/api/v1/namespaces/shop/pods", a_pod("web"))
    page, _ = started(cluster, "--allow-actions")
    cluster.until(lambda: page.send(ADMIN, "cluster")[1]["counts"]["pods"] == 1, what="the pod")

    sign_in(tab, page.port, POWERLESS, "/nodes/node-1")
    settled(tab)
    tab.page.get_by_role("button", name="Cordon", exact=True).click()
    tab.page.get_by_role("button", name="Cordon", exact=True).click()

    expect(tab.page.get_by_role("alert")).to_contain_text("cannot patch resource")
    assert cluster.api.get("/api/v1/nodes/node-1")["spec"].get("unschedulable") is None

    tab.page.get_by_role("button", name="Sign out").click()
    sign_in(tab, page.port, ADMIN, "/nodes/node-1")
    settled(tab)
    tab.page.get_by_role("button", name="Cordon", exact=True).click()
    tab.page.get_by_role("button", name="Cordon", exact=True).click()
    expect(tab.page.locator("main")).to_contain_text("It is cordoned")
    assert cluster.api.get("/api/v1/nodes/node-1")["spec"]["unschedulable"] is True
