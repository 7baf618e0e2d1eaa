"""The README of examples/node-crd-resource-fit, command by command, with the real kubectl."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program, clean_environment, private_home
from tests.real_kubectl.conftest import Up, mooring_up, real_program

from mooring.config import load_configuration
from mooring.plugins.catalogue import catalogue

EXAMPLE = Path(__file__).parents[2] / "examples" / "node-crd-resource-fit"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
FILES = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLE.glob("*.yaml")}
CONFIG = "--config=scheduler-config.yaml"
DEFINED = "crd/clusterscopedresources.scheduling.sigs.k8s.io"
OTHER_PROFILE = "- schedulerName: default-scheduler\n"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands() -> list[tuple[str, str]]:
    """The commands of the README, each with the output it shows (none if it shows none)."""
    commands = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            commands.append((command, output))
    return commands


def message_of(line: str) -> str:
    """A log line without time and process; either of the two equal nodes may be chosen."""
    return re.sub(r' node="node-[56]"', ' node="…"', re.sub(r"^I.{26} *\d+ ", "", line))


@pytest.fixture
def walk() -> Iterator[Up]:
    with mooring_up("--nodes=6", CONFIG, "-v=5", files=FILES) as running:
        yield running


def test_the_commands_of_the_readme_show_its_output(walk: Up):
    folder = walk.kubeconfig.parent
    tools = folder / "bin"
    tools.mkdir()
    (tools / "kubectl").symlink_to(real_program("kubectl"))
    mooring = tools / "mooring"
    mooring.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mooring "$@"\n')
    mooring.chmod(0o755)
    environment = clean_environment(folder) | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "KUBECONFIG": str(walk.kubeconfig),
        "KUBERC": "off",
    }
    typed = [command for command, _ in commands()]
    assert typed[:2] == [
        "mooring up --nodes 6 --config scheduler-config.yaml -v=5",
        "export KUBECONFIG=$PWD/mooring.kubeconfig",
    ]
    for command, shown in commands()[2:]:
        done = subprocess.run(
            ["sh", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=90, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        if shown:
            assert done.stdout == shown, command
        if command.startswith("sed "):
            (refusal,) = re.findall(r"^fails with `(.*)`\.$", README, re.M)
            assert refusal in done.stderr
        if command.startswith("mooring explain"):
            assert re.search(r"NodeCRDResourceFit +55 +55 +1 +55\n", done.stdout)

    assert (folder / "crds.yaml").read_text() == FILES["crds.yaml"]
    (log,) = [block for block in blocks("") if "Add event" in block]
    walk.mooring.mentions('"Successfully bound pod to node"')
    walk.mooring.mentions('"Add event for scheduled pod"')
    written = [message_of(line) for line in walk.mooring.err]
    for line in log.splitlines():
        assert message_of(line) in written


def test_pods_wait_for_the_definition_and_then_for_an_object(walk: Up):
    walk.run("delete", DEFINED)
    walk.run("apply", "-f", "-", input=FILES["simple-pod.yaml"])
    walk.run("wait", "--for=condition=PodScheduled=False", "pod/nginx", "--timeout=60s")
    walk.mooring.mentions('"Unable to schedule pod; no fit; waiting"')
    waits = walk.out("get", "pod", "nginx", "-o", "jsonpath={.status.conditions[?(@.type=='PodScheduled')].message}")
    assert waits == (
        "profile secondary-scheduler waits for what its plugin NodeCRDResourceFit reads: the server has no "
        "clusterscopedresources.scheduling.sigs.k8s.io (v1alpha1); is its CustomResourceDefinition installed? "
        "This installs it: mooring crd generate NodeCRDResourceFit | kubectl apply -f -"
    )
    assert " ".join(waits.split()) in " ".join(README.split())

    walk.run("apply", "-f", "-", input=FILES["crds.yaml"])
    walk.run("wait", "--for=condition=Established", DEFINED, "--timeout=60s")
    walk.mooring.mentions("0/6 nodes are available: 6 CRD for node not found.")
    off = FILES["clusterscopedresources-cr.yaml"].replace(": true", ": false")
    walk.run("apply", "-f", "-", input=off)
    assert not walk.out("get", "pod", "nginx", "-o", "jsonpath={.spec.nodeName}")
    walk.run("apply", "-f", "-", input=FILES["clusterscopedresources-cr.yaml"])
    walk.run("wait", "--for=condition=Ready", "pod/nginx", "--timeout=60s")


def test_other_profiles_go_on_without_the_definition():
    files = FILES | {"scheduler-config.yaml": FILES["scheduler-config.yaml"] + OTHER_PROFILE}
    with mooring_up("--nodes=1", CONFIG, "-v=2", files=files) as kubectl:
        kubectl.run("delete", DEFINED)
        kubectl.run("apply", "-f", "-", input=FILES["simple-pod.yaml"])
        kubectl.run("wait", "--for=condition=PodScheduled=False", "pod/nginx", "--timeout=60s")
        kubectl.run("run", "web", "--image=nginx")
        kubectl.run("wait", "--for=condition=Ready", "pod/web", "--timeout=60s")


def test_the_definition_needs_its_approval_and_objects_their_kind(walk: Up):
    walk.run("delete", DEFINED)
    unapproved = re.sub(r"  annotations:\n.*\n", "", FILES["crds.yaml"])
    assert "protected groups must have approval annotation" in walk.refusal("apply", "-f", "-", input=unapproved)
    walk.run("apply", "-f", "-", input=FILES["crds.yaml"])
    walk.run("wait", "--for=condition=Established", DEFINED, "--timeout=60s")
    plural = FILES["clusterscopedresources-cr.yaml"].replace("ClusterScopedResource\n", "ClusterScopedResources\n")
    assert 'no matches for kind "ClusterScopedResources"' in walk.refusal("apply", "-f", "-", input=plural)


def test_on_a_cluster_that_runs_already_the_command_line_names_its_kubeconfig():
    with private_home() as home:
        shutil.copy(EXAMPLE / "scheduler-config.yaml", home)
        with Program("cluster", "--nodes=1", "--write-kubeconfig=mine", home=home) as cluster:
            cluster.ready()
            with Program("run", CONFIG, "--kubeconfig=mine", "-v=5", home=home) as scheduler:
                scheduler.mentions("is its CustomResourceDefinition installed?")
                assert scheduler.end() == 0, scheduler.written()
            assert cluster.end() == 0, cluster.written()


@pytest.mark.parametrize("text", blocks("yaml"))
def test_configurations_to_paste_load_without_a_warning(text: str):
    assert not load_configuration(text, source="README.md", registry=catalogue()).warnings
