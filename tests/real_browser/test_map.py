"""The map of nodes: open it with the printed link, filter, colour, reach a node; what happens appears by itself."""

import re

from playwright.sync_api import Page, expect
from tests.real_browser.browser import Tab, a_tab
from tests.real_browser.served import Served, settled
from tests.real_kubectl.conftest import Up

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers: [{name: main, image: web, resources: {requests: {cpu: 100m}}}]
"""


def option(page: Page, name: str):
    return page.get_by_role("listbox", name="Nodes").get_by_role("option", name=re.compile(rf"^{name}\b"))


def test_the_printed_link_shows_the_nodes_and_leaves_no_token_in_the_address(tab: Tab, shop_page: Served) -> None:
    tab.page.goto(shop_page.link)
    settled(tab)

    expect(tab.page).to_have_title(re.compile("Map"))
    expect(tab.page.locator("#match-count")).to_have_text("22 nodes")
    expect(option(tab.page, "web-1")).to_be_visible()
    expect(tab.page.locator("#connection")).to_have_text("Live")
    used = "Decided with the configuration of the scheduler on this machine"
    expect(tab.page.get_by_role("contentinfo")).to_contain_text(used)
    assert shop_page.token not in tab.page.url
    assert shop_page.token not in str(tab.page.evaluate("[document.cookie, JSON.stringify(localStorage)]"))


def test_a_filter_leaves_the_nodes_that_match(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)

    tab.page.get_by_label("Filter", exact=True).fill("label.pool=gpu and nvidia.com/gpu.free>0")
    expect(tab.page.locator("#match-count")).to_have_text(re.compile(r"\d of 22 nodes match"))
    expect(option(tab.page, "web-1")).to_have_count(0)

    tab.page.get_by_label("Filter", exact=True).fill("zone=zone-a")
    expect(tab.page.locator("#match-count")).to_have_text("8 of 22 nodes match")


def test_a_wrong_filter_is_reported_under_the_field(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)

    tab.page.get_by_label("Filter", exact=True).fill("cpu.free > > 2")

    expect(tab.page.get_by_role("alert")).to_be_visible()
    expect(tab.page.get_by_label("Filter", exact=True)).to_have_attribute("aria-invalid", "true")
    expect(tab.page.locator("#match-count")).to_have_text("22 nodes")


def test_an_address_reproduces_the_view(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)
    tab.page.get_by_label("Filter", exact=True).fill("label.pool=data")
    tab.page.get_by_label("Colour", exact=True).select_option("zone")
    tab.page.get_by_label("Group", exact=True).select_option("zone")
    expect(tab.page.locator("#match-count")).to_have_text("6 of 22 nodes match")
    expect(tab.page).to_have_url(re.compile(r"#/map\?.*color=zone"))

    browser = tab.page.context.browser
    assert browser is not None
    with a_tab(browser) as other:
        shop_page.open(other, tab.page.url.partition("#")[2])

        expect(other.page.get_by_label("Filter", exact=True)).to_have_value("label.pool=data")
        expect(other.page.get_by_label("Colour", exact=True)).to_have_value("zone")
        expect(other.page.locator("#match-count")).to_have_text("6 of 22 nodes match")
        assert other.unexpected() == []


def test_a_click_on_the_map_opens_a_node(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)
    canvas = tab.page.locator("#map")
    expect(canvas).to_have_attribute("data-paint", re.compile(r"\d"))

    canvas.click(position={"x": 20, "y": 20})

    expect(tab.page).to_have_url(re.compile(r"#/nodes/"))
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text(re.compile(r"gpu-\d"))


def test_a_pod_that_is_created_appears_without_a_reload(tab: Tab, shop_page: Served, cluster: Up) -> None:
    shop_page.open(tab)

    cluster.run("create", "-f", "-", input=POD % "just-created")
    bound = tab.page.locator(".decision", has_text="default/just-created").filter(has_text="bound")

    expect(bound).to_be_visible()
    node = cluster.json("get", "pod", "just-created")["spec"]["nodeName"]
    expect(bound).to_contain_text(node)
    cluster.run("delete", "pod", "just-created")
    expect(tab.page.locator(".decision", has_text="default/just-created").filter(has_text="deleted")).to_be_visible()


def test_the_keyboard_alone_opens_a_node_and_comes_back(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)
    page = tab.page

    until_focused(page, "#nodes")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/nodes/"))
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator("main")).to_be_focused()

    page.go_back()
    expect(page).to_have_url(re.compile(r"#/map"))
    expect(option(page, "web-1")).to_be_visible()


def test_the_keyboard_alone_reaches_an_explanation(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab)
    page = tab.page

    page.keyboard.press("/")
    page.keyboard.type("legacy")
    expect(page.get_by_role("option", name="shop/legacy")).to_be_visible()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"#/pods/shop/legacy"))
    expect(page.locator("#summary")).to_contain_text("waits for a node")
    page.go_back()
    expect(page).to_have_url(re.compile(r"#/map"))


def until_focused(page: Page, selector: str) -> None:
    """Press Tab until an element has the focus; every stop on the way shows where it is."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("selector => document.activeElement.matches(selector)", selector):
            return
        assert page.evaluate(
            """() => { const style = getComputedStyle(document.activeElement);
                       return style.outlineStyle !== 'none' || style.boxShadow !== 'none' }"""
        ), page.evaluate("document.activeElement.outerHTML")
    raise AssertionError(f"Tab does not reach {selector}")
