"""Names, labels, annotations and messages that try to become markup or script stay text, in every view."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from tests.real_browser.browser import Tab
from tests.real_browser.served import Served
from tests.real_kubectl.conftest import Kubectl, Up

SCRIPT = "<script>window.injected=1;alert(1)</script>"
IMAGE = "\"'><img src=x onerror=window.injected=1><a href=javascript:window.injected=1>free nodes</a>"
TEMPLATE = "{{constructor.constructor('window.injected=1')()}}${window.injected=1}"
# What a name may hold is little; messages, annotations, conditions and messages of events are free text.
HOSTILE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "constructor",
        "labels": {"app": "constructor", "example.com/x": "javascript.alert"},
        "annotations": {"example.com/a": SCRIPT, "example.com/b": IMAGE},
    },
    "spec": {
        "nodeSelector": {"disk": "constructor"},
        "schedulerName": "default-scheduler",
        "containers": [{"name": "main", "image": "x:<b>1</b>", "resources": {"requests": {"cpu": "1"}}}],
    },
}
NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {
        "name": "hostile-node",
        "labels": {"topology.kubernetes.io/zone": "toString", "constructor": "valueOf"},
    },
    "spec": {"taints": [{"key": "constructor", "value": "hasOwnProperty", "effect": "NoSchedule"}]},
    "status": {
        "capacity": {"cpu": "1", "memory": "1Gi", "pods": "10"},
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
        "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": SCRIPT + IMAGE},
            {"type": "DiskPressure", "status": "False", "reason": "Fine", "message": TEMPLATE},
        ],
    },
}


@pytest.fixture(scope="module")
def hostile(cluster: Up) -> Iterator[Kubectl]:
    """A namespace with a pod, and a node beside the shop's, that try."""
    namespace = cluster.in_namespace("hostile")
    cluster.run("create", "namespace", "hostile")
    cluster.run("create", "-f", "-", input=json.dumps(NODE))
    namespace.run("create", "-f", "-", input=json.dumps(HOSTILE))
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": SCRIPT + IMAGE + TEMPLATE,
    }
    namespace.run(
        "patch",
        "pod",
        "constructor",
        "--subresource=status",
        "--patch",
        json.dumps({"status": {"conditions": [condition]}}),
    )
    yield namespace
    cluster.run("delete", "namespace", "hostile", "--wait=false")
    cluster.run("delete", "node", "hostile-node")


VIEWS = [
    "/map?color=zone&group=zone",
    "/map?color=label:constructor&group=label:constructor",
    "/map?color=taints&filter=zone%3DtoString",
    "/queue",
    "/live",
    "/pods/hostile/constructor",
    "/pods/hostile/constructor?why-not=hostile-node",
    "/nodes/hostile-node",
    "/what-if?pod=hostile%2Fconstructor",
    f"/map?filter={SCRIPT}&color={IMAGE}&group=label:{IMAGE}",
    "/time",
    "/compare",
    "/__proto__",
    "/constructor",
]


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_becomes_script_or_markup(tab: Tab, shop_page: Served, hostile: Kubectl, view: str) -> None:
    shop_page.open(tab, view)

    page = tab.page
    expect(page.locator("main")).not_to_be_empty()
    assert page.evaluate("window.injected") is None
    assert page.evaluate("({}).injected") is None
    assert (
        page.locator("main img, main script, main iframe, main object, main [onerror], main [href^=javascript]").count()
        == 0
    )


@pytest.mark.parametrize("view", ["/pods/hostile/<img src=x onerror=alert(1)>", "/nodes/<script>alert(1)</script>"])
def test_an_address_that_tries_is_shown_as_text(tab: Tab, shop_page: Served, view: str) -> None:
    tab.allow("status of 40[04]")
    shop_page.open(tab)

    tab.page.goto(f"{shop_page.origin}/#{view}")

    expect(tab.page.get_by_role("alert")).to_be_visible()
    assert tab.page.locator("main img, main script").count() == 0


def test_the_page_has_the_headers_that_stop_scripts_of_others(tab: Tab, shop_page: Served) -> None:
    response = tab.page.goto(shop_page.link)

    assert response is not None
    policy = response.header_value("content-security-policy") or ""
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert response.header_value("x-content-type-options") == "nosniff"
    assert response.header_value("referrer-policy") == "no-referrer"
