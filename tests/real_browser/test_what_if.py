"""What-ifs and comparisons: placements, weights and configurations change, and nothing is created."""

import re

from playwright.sync_api import Page, expect
from tests.real_browser.browser import Tab, a_tab
from tests.real_browser.served import Served, settled
from tests.real_browser.test_explanations import pod_of
from tests.real_kubectl.conftest import Up

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: imagined}
spec:
  containers: [{name: main, image: web, resources: {requests: {cpu: %s}}}]
"""
NODE = """\
apiVersion: v1
kind: Node
metadata: {name: big}
status: {allocatable: {cpu: "96", memory: 64Gi, pods: "110"}}
"""
MOST_ALLOCATED = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 1}]}}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def settled_results(page: Page) -> None:
    """Wait for the outcome of what was last entered: it is requested after a pause in typing."""
    expect(page.locator("#results")).to_have_attribute("aria-busy", "false")


def test_a_pasted_pod_is_placed_and_not_created(tab: Tab, shop_page: Served, cluster: Up) -> None:
    shop_page.open(tab, "/what-if")
    page = tab.page

    page.locator("#what-if-pods").fill(POD % "250m")

    expect(page.locator("#results")).to_contain_text("imagined")
    expect(page.locator("#results").get_by_role("link", name=re.compile(r"^(web|data)-\d+$")).first).to_be_visible()
    assert "imagined" not in cluster.out("get", "pods", "--all-namespaces")


def test_the_outcome_of_an_earlier_input_is_marked_beside_a_mistake(tab: Tab, shop_page: Served) -> None:
    tab.allow("status of 400")
    shop_page.open(tab, "/what-if")
    page = tab.page
    results, problem = page.locator("#results"), page.locator("#what-if-problem")
    page.locator("#what-if-pods").fill(POD % "250m")
    expect(results).to_contain_text("imagined")

    page.locator("#what-if-pods").fill((POD % "250m").replace("containers", "containrs"))

    expect(problem).to_contain_text('line 5: Pod "default/imagined": unknown field "spec.containrs"')
    assert problem.inner_text().count("containrs") == 1
    expect(results).to_contain_text("This is the outcome before the change above, which has a mistake.")
    page.locator("#what-if-pods").fill(POD % "300m")
    expect(results).not_to_contain_text("which has a mistake")
    expect(problem).to_be_empty()


def test_a_comparison_is_marked_beside_a_mistake(tab: Tab, shop_page: Served) -> None:
    tab.allow("status of 400")
    shop_page.open(tab, "/compare")
    page = tab.page
    expect(page.locator("#results")).to_contain_text("Outcome")

    page.locator("#config-second").fill(MOST_ALLOCATED.replace("NodeResourcesFit, weight", "NodeResourceFit, weight"))

    expect(page.locator("#compare-problem")).to_contain_text("configuration B has 1 problem.")
    expect(page.locator("#results")).to_contain_text("which has a mistake")


def test_a_pod_that_fits_nowhere_fits_an_added_node(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/what-if")
    page = tab.page
    page.locator("#what-if-pods").fill(POD % '"40"')
    results = page.locator("#results")
    expect(results).to_contain_text("imagined")
    expect(results.get_by_role("row", name="default/imagined").get_by_role("link")).to_have_count(0)

    page.get_by_label("of the kind").select_option("template")
    page.get_by_label("Manifest of the node").fill(NODE)

    expect(results.get_by_role("row", name="default/imagined")).to_contain_text("added")


def test_a_cordoned_node_takes_no_pod(tab: Tab, shop_page: Served, cluster: Up) -> None:
    pod = f"ml/{pod_of(cluster, 'ml', 'serve')}"
    shop_page.open(tab, f"/what-if?pod={pod}")
    page = tab.page
    settled_results(page)

    for number in range(1, 5):
        page.get_by_label("Cordon", exact=True).fill(f"gpu-{number}")
        page.get_by_label("Cordon", exact=True).press("Enter")

    expect(page.locator("#results")).to_contain_text("unschedulable")
    assert cluster.json("get", "node", "gpu-1")["spec"].get("unschedulable") is None


def test_a_slider_changes_the_weight_and_the_scores(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/what-if")
    page = tab.page
    page.locator("#what-if-pods").fill(POD % "250m")
    results = page.locator("#results")
    expect(results).to_contain_text(re.compile(r"NodeResourcesFit\s*×1"))

    slider = page.get_by_label("NodeResourcesFit", exact=True)
    slider.focus()
    for _ in range(4):
        page.keyboard.press("ArrowRight")

    expect(results).to_contain_text(re.compile(r"NodeResourcesFit\s*×5"))
    expect(page).to_have_url(re.compile(r"#/what-if\?"))
    browser = page.context.browser
    assert browser is not None
    with a_tab(browser) as other:
        shop_page.open(other, page.url.partition("#")[2])
        expect(other.page.get_by_label("NodeResourcesFit", exact=True)).to_have_value("5")
        expect(other.page.locator("#results")).to_contain_text(re.compile(r"NodeResourcesFit\s*×5"))


def test_a_wrong_manifest_is_reported_beside_it(tab: Tab, shop_page: Served) -> None:
    tab.allow("status of 400")
    shop_page.open(tab, "/what-if")
    page = tab.page

    page.locator("#what-if-pods").fill("kind: Pod\nspec: {containers: [")

    expect(page.locator("#what-if-problem")).to_contain_text(re.compile(r"\w"))
    expect(page.locator("#what-if-pods")).to_have_attribute("aria-invalid", "true")


def test_two_configurations_are_compared_side_by_side(tab: Tab, shop_page: Served) -> None:
    shop_page.open(tab, "/compare")
    page = tab.page

    page.get_by_label("Configuration B").fill(MOST_ALLOCATED)

    settled(tab)
    expect(page.locator("#outcome")).to_contain_text(re.compile(r"would go elsewhere with B|Both decide alike"))
    expect(page.locator("#differences")).to_be_visible()
    expect(page.get_by_role("heading", name="Nodes used with A")).to_be_visible()
    expect(page.get_by_role("heading", name="Nodes used with B")).to_be_visible()
