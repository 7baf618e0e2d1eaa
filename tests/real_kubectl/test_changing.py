"""kubectl changes what is there: replace, edit, the three patches, eviction under a budget; and what it is refused."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.cli.programs import Program
from tests.real_kubectl.conftest import TIMEOUT_SECONDS, Kubectl, Up

A_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {colour: red, size: small}}"


@pytest.fixture
def settings(shop: Kubectl) -> Kubectl:
    shop.run("create", "-f", "-", input=A_MAP)
    return shop


def data(kubectl: Kubectl) -> dict[str, str]:
    found: dict[str, str] = kubectl.json("get", "configmap", "settings")["data"]
    return found


def test_replacing_from_a_stale_copy_conflicts(settings: Kubectl):
    stale = settings.out("get", "configmap", "settings", "-o", "json")
    settings.run("label", "configmap", "settings", "a=b")
    assert "the object has been modified; please apply your changes to the latest version" in settings.refusal(
        "replace", "-f", "-", input=stale
    )
    settings.run("replace", "-f", "-", input=A_MAP.replace("red", "blue"))
    assert data(settings)["colour"] == "blue"


def edited(kubectl: Kubectl, script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `kubectl edit` with a sed script for an editor."""
    editor = folder / "editor"
    editor.write_text(f'#!/bin/sh\nexec sed -i "{script}" "$1"\n', encoding="utf-8")
    editor.chmod(0o700)
    return subprocess.run(
        kubectl.command("edit", "configmap", "settings"),
        env=kubectl.environment() | {"EDITOR": str(editor)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )


def test_editing(settings: Kubectl, tmp_path: Path):
    assert edited(settings, "s/colour: red/colour: green/", tmp_path).stdout == "configmap/settings edited\n"
    assert data(settings)["colour"] == "green"
    assert "no changes made" in edited(settings, "s/nothing/else/", tmp_path).stderr


PATCHES = {
    "strategic": '{"data": {"colour": "blue", "size": null}}',
    "merge": '{"data": {"colour": "blue", "size": null}}',
    "json": '[{"op": "replace", "path": "/data/colour", "value": "blue"}, {"op": "remove", "path": "/data/size"}]',
}


@pytest.mark.parametrize(("kind", "patch"), PATCHES.items(), ids=PATCHES.keys())
def test_patching(settings: Kubectl, kind: str, patch: str):
    settings.run("patch", "configmap", "settings", f"--type={kind}", "-p", patch)
    assert data(settings) == {"colour": "blue"}


def test_a_json_patch_whose_test_fails_names_the_operation(settings: Kubectl):
    patch = '[{"op": "test", "path": "/data/colour", "value": "blue"}]'
    assert "operation 0: test /data/colour: the value there is another" in settings.refusal(
        "patch", "configmap", "settings", "--type=json", "-p", patch
    )


def test_server_side_apply_is_refused_with_what_to_do_instead(settings: Kubectl):
    refused = settings.refusal("apply", "--server-side", "-f", "-", input=A_MAP)
    assert "use kubectl apply without --server-side" in refused


def test_the_definition_of_a_protected_group_needs_approval(up: Up):
    metadata: dict[str, Any] = {"name": "boats.x.k8s.io"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": "x.k8s.io",
            "scope": "Namespaced",
            "names": {"plural": "boats", "kind": "Boat"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
            ],
        },
    }
    refused = up.refusal("create", "-f", "-", input=json.dumps(definition))
    assert "protected groups must have approval annotation" in refused
    metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, a test"}
    up.run("create", "-f", "-", input=json.dumps(definition))
    up.run("delete", "crd", "boats.x.k8s.io")


def test_an_exhausted_budget_stops_a_drain_with_a_message(up: Up, shop: Kubectl):
    shop.run("run", "web", "--image=pause", "--labels=app=web")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    shop.run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
    node = shop.rows("get", "pod", "web", "-o", "wide")[0]["NODE"]

    drain = ["drain", node, "--force", "--pod-selector=app=web"]
    try:
        with Program(home=up.kubeconfig.parent, program=up.command(*drain, "--timeout=60s")) as draining:
            draining.mentions("it would violate the pod's disruption budget")
        shop.run("patch", "poddisruptionbudget", "web", "--type=merge", "-p", json.dumps({"spec": {"minAvailable": 0}}))
        shop.run("wait", "--for=jsonpath={.status.disruptionsAllowed}=1", "pdb/web", "--timeout=60s")
        assert "pod/web evicted" in up.out(*drain, "--timeout=60s")
    finally:
        up.run("uncordon", node)


def test_nodes_come_page_by_page(up: Up):
    first = json.loads(up.out("get", "--raw", "/api/v1/nodes?limit=2"))
    assert (len(first["items"]), first["metadata"]["remainingItemCount"]) == (2, 1)
    second = json.loads(up.out("get", "--raw", f"/api/v1/nodes?limit=2&continue={first['metadata']['continue']}"))
    assert [node["metadata"]["name"] for node in second["items"]] == ["node-3"]
    assert len(up.rows("get", "nodes", "--chunk-size=1")) == 3


def test_what_simulated_containers_cannot_do_is_refused(shop: Kubectl):
    shop.run("run", "web", "--image=pause")
    shop.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")
    assert "simulated containers listen on no ports" in shop.refusal("port-forward", "pod/web", ":80")
    assert "there is nothing to attach to" in shop.refusal("attach", "web")


def test_deleting_all_pods(shop: Kubectl):
    for name in ("a", "b"):
        shop.run("run", name, "--image=pause")
    assert len(shop.out("delete", "pods", "--all").splitlines()) == 2
    assert shop.out("get", "pods", "-o", "name") == ""
