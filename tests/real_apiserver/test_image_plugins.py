"""Plugins and the packages they need, in the image: by a ConfigMap, by a mounted folder, by an image upon it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.programs import Program, private_home
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.containers import Container, Document, can_contain, removed
from tests.real_apiserver.deployments import Deployment, manifests, own_port

PLUGIN = '''
from mooring.framework import Plugin, Rejection


class Favourite(Plugin):
    """Only node-2 will do."""

    def filter(self, pod, node, cycle):
        return None if node.name == "node-2" else Rejection("not the favourite")
'''
CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: Favourite}]}}
"""
needs_mounts = pytest.mark.skipif(not can_contain(), reason="only root can make mounts of their own for a process")


@pytest.fixture
def folder() -> Iterator[Path]:
    with private_home() as home:
        home.chmod(0o755)
        yield home


def listed(root: Path, folder: Path, spec: Document, node: dict[str, Path]) -> Program:
    """`mooring plugin show Favourite` in a container, at its end."""
    made = Container(
        spec,
        root=root,
        folder=folder,
        config_maps={},
        server=("", 0),
        token="",
        ca_pem="",
        namespace="",
        node=node,
    )
    with made.start() as program:
        program.ended()
        return program


def test_a_config_map_brings_a_plugin(cluster: Cluster, image_root: Path):
    plugin, config = cluster.home / "favourite.py", cluster.home / "scheduler.yaml"
    plugin.write_text(PLUGIN, encoding="utf-8")
    config.write_text(CONFIG, encoding="utf-8")
    flags = (f"--config={config}", f"--plugins={plugin}", "--name=favourite", "--namespace=favourite")
    cluster.nodes(3)
    with Deployment(cluster, manifests(*flags, home=cluster.home), image_root) as deployment:
        scheduler = deployment.start(*own_port())
        scheduler.ready()
        cluster.pod("web")
        assert cluster.bound("web") == "node-2"
        assert scheduler.end() == 0, scheduler.written()


@needs_mounts
def test_a_mounted_folder_brings_plugins_and_their_packages(image_root: Path, folder: Path):
    mine = folder / "mine"
    (mine / "packages").mkdir(parents=True)
    (mine / "packages" / "favourites.py").write_text("", encoding="utf-8")
    (mine / "favourite.py").write_text(f"import favourites\n{PLUGIN}", encoding="utf-8")
    container = {
        "command": ["mooring", "plugin", "show", "Favourite", "--plugins=/plugins"],
        "env": [{"name": "PYTHONPATH", "value": "/plugins/packages"}],
        "volumeMounts": [{"name": "mine", "mountPath": "/plugins", "readOnly": True}],
    }
    spec = {"containers": [container], "volumes": [{"name": "mine", "hostPath": {"path": "/mine"}}]}
    shown = listed(image_root, folder, spec, {"/mine": mine})
    assert shown.process.returncode == 0, shown.written()
    assert shown.out[0].startswith("Favourite (/plugins")


def wheel(folder: Path) -> Path:
    """A package with an entry point, as users install it into an image of their own."""
    path = folder / "favourites-1-py3-none-any.whl"
    info = "favourites-1.dist-info"
    files = {
        "favourites.py": PLUGIN,
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: favourites\nVersion: 1\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "[mooring.plugins]\nfavourite = favourites:Favourite\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@needs_mounts
def test_an_image_upon_it_brings_packages_with_plugins(image_root: Path, folder: Path):
    derived = folder / "derived"
    shutil.copytree(image_root, derived, symlinks=True)
    home = derived / "opt" / "mooring"
    subprocess.run(["chmod", "-R", "u+w", str(home)], check=True)
    install = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(home / "bin" / "python")]
    subprocess.run([*install, "install", "--quiet", "--no-index", str(wheel(folder))], check=True, capture_output=True)
    spec = {"containers": [{"command": ["mooring", "plugin", "show", "Favourite"]}], "volumes": []}
    shown = listed(derived, folder, spec, {})
    removed(derived)
    assert shown.process.returncode == 0, shown.written()
    assert shown.out[0] == "Favourite (package favourites)"
