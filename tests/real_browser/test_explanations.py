"""From the queue to a pod's explanation: the reason, filters, scores, what would help, why not a node."""

import re

from playwright.sync_api import expect
from tests.real_browser.browser import Tab
from tests.real_browser.served import Served
from tests.real_kubectl.conftest import Up


def pod_of(cluster: Up, namespace: str, app: str) -> str:
    """The name of a pod of a Deployment."""
    names = cluster.in_namespace(namespace).out("get", "pods", f"--selector=app={app}", "--output=name")
    return names.split()[0].removeprefix("pod/")


def test_the_queue_groups_pods_by_reason(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/queue")
    page = tab.page

    expect(page.get_by_role("status").filter(has_text="pending pods")).to_be_visible()
    groups = page.locator("section.group")
    expect(groups.filter(has_text="shop/legacy")).to_have_count(1)
    expect(groups.filter(has_text="data/warehouse")).to_contain_text("2 pods")
    assert groups.count() >= 4


def test_a_click_leads_from_the_queue_to_the_explanation(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/queue")
    page = tab.page

    page.get_by_role("link", name="data/warehouse").first.click()

    expect(page.locator("#summary")).to_contain_text("It waits for a node")
    expect(page.locator("#funnel-line")).to_have_text(re.compile(r"^22 → .*0$"))
    expect(page.locator("#nearest")).to_contain_text("cpu")
    expect(page.locator("#waits")).to_be_visible()


def test_a_bound_pod_shows_its_scores_and_the_runner_up(tab: Tab, shop_page: Served, cluster: Up) -> None:
    name = pod_of(cluster, "shop", "frontend")
    shop_page.open(tab, f"/pods/shop/{name}")
    page = tab.page

    expect(page.locator("#summary")).to_contain_text(re.compile(r"It runs on web-\d+"))
    scores = page.locator("#scores")
    assert scores.locator(".score-rows > li").count() > 1
    scores.get_by_role("button", name="Show numbers").click()
    expect(scores.get_by_role("table")).to_contain_text("NodeResourcesFit")


def test_scores_show_what_decides(tab: Tab, shop_page: Served, cluster: Up) -> None:
    shop_page.open(tab, f"/pods/shop/{pod_of(cluster, 'shop', 'frontend')}")
    scores = tab.page.locator("#scores")

    expect(scores).to_contain_text(re.compile(r"Every node gets the same from .*: the bars leave it out"))
    expect(scores.locator(".series")).to_contain_text("NodeResourcesFit")
    expect(scores.locator(".series")).not_to_contain_text("TaintToleration")


def test_why_not_names_the_filter_that_rejects_a_node(tab: Tab, shop_page: Served, cluster: Up) -> None:
    name = pod_of(cluster, "shop", "frontend")
    shop_page.open(tab, f"/pods/shop/{name}")
    page = tab.page

    page.get_by_label("Why not on").fill("gpu-1")
    page.locator("#why-not").get_by_role("button", name="Show").click()

    verdict = page.locator("#why-not")
    expect(verdict).to_contain_text("It cannot run on gpu-1")
    expect(verdict.get_by_role("table").first).to_contain_text("TaintToleration")
    expect(page).to_have_url(re.compile("why-not=gpu-1"))


def test_a_pod_that_does_not_exist_is_reported_with_the_nearest_names(tab: Tab, shop_page: Served, cluster: Up) -> None:
    name = pod_of(cluster, "shop", "legacy")
    tab.allow("status of 404")
    shop_page.open(tab, "/queue")

    tab.page.goto(f"{shop_page.origin}/#/pods/shop/{name[:-1]}")

    expect(tab.page.get_by_role("alert")).to_contain_text("Not found")
    expect(tab.page.get_by_role("link", name=name)).to_be_visible()


def test_a_nodes_page_shows_what_runs_there_and_what_it_rejected(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/nodes/gpu-1")
    page = tab.page

    expect(page.get_by_role("heading", level=1)).to_contain_text("gpu-1")
    expect(page.locator("a", has_text=re.compile(r"ml.(train|serve)-")).first).to_be_visible()
    expect(page.locator("main")).to_contain_text("NoSchedule")
    expect(page.locator("main")).to_contain_text(re.compile("shop/legacy|data/warehouse"))
