"""The files of the NetworkTraffic example belong together, and the commands of its README work as shown."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import yaml
from tests.examples.conftest import EXAMPLES

from mooring.config import load_configuration
from mooring.deploy.static_pod import CONFIG_PATH
from mooring.plugins.catalogue import catalogue

EXAMPLE = EXAMPLES / "network-traffic"
README = (EXAMPLE / "README.md").read_text(encoding="utf-8")
CONFIG, MANIFEST = EXAMPLE / "networktraffic-config.yaml", EXAMPLE / "kube-scheduler.yaml"


def test_the_configuration_loads_and_lets_this_plugin_alone_score():
    loaded = load_configuration(CONFIG.read_text(encoding="utf-8"), source=CONFIG.name, registry=catalogue())
    assert not loaded.warnings
    assert loaded.configuration.client_connection.kubeconfig == "/etc/kubernetes/scheduler.conf"
    (profile,) = loaded.configuration.profiles
    assert profile.scheduler_name == "default-scheduler"
    assert str(profile.args["NetworkTraffic"]).startswith("NetworkTrafficArgs(prometheus_address='http://prometheus")


def test_the_static_pod_mounts_every_file_that_it_reads():
    spec = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))["spec"]
    (container,) = spec["containers"]
    config = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
    read = {CONFIG_PATH, config["clientConnection"]["kubeconfig"]}
    assert f"--config={CONFIG_PATH}" in container["command"]
    assert {mount["mountPath"] for mount in container["volumeMounts"]} == read
    assert {volume["hostPath"]["path"] for volume in spec["volumes"]} == read
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in spec["volumes"]}


def test_the_way_there_and_the_way_back_on_a_control_plane_node(tmp_path: Path):
    there, back = re.findall(r"^```sh\n(.*?)^```$", README, re.M | re.S)
    live = tmp_path / "manifests" / "kube-scheduler.yaml"
    live.parent.mkdir(parents=True)
    live.write_text("kube-scheduler", encoding="utf-8")

    def do(commands: str) -> None:
        commands = commands.replace("/etc/kubernetes", str(tmp_path))
        subprocess.run(["bash", "-euc", commands], cwd=EXAMPLE, check=True)

    do(there)
    assert live.read_bytes() == MANIFEST.read_bytes()
    assert (tmp_path / Path(CONFIG_PATH).name).read_bytes() == CONFIG.read_bytes()
    do(back)
    assert live.read_text(encoding="utf-8") == "kube-scheduler"


def test_the_readme_lists_every_file():
    files = {path.name for path in EXAMPLE.iterdir() if path.is_file()} - {"README.md"}
    assert set(re.findall(r"^\| \[([^]]+)\]\(\1\)", README, re.M)) == files
