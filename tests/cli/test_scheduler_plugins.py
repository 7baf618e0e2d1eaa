"""`mooring explain` runs plugin files of the scheduler that runs here, unless another user can have written them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.clusters import a_server, create_node, create_pod
from tests.cli.programs import Program, private_home

from mooring.cli.scheduler_plugins import scheduler_plugins

PLUGIN = """
from mooring.framework import Plugin, Rejection

class {name}(Plugin):
    def filter(self, pod, node, cycle):
        return Rejection("node(s) are of another tier")
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- {schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: Tiers}]}}}
- {schedulerName: other, plugins: {multiPoint: {enabled: [{name: Others}]}}}
"""


def world_writable(file: Path) -> None:
    file.chmod(0o666)


def in_a_shared_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def with_a_shared_helper(file: Path) -> None:
    file.write_text(f"from .helper import anything\n{PLUGIN.format(name='Tiers')}", encoding="utf-8")
    helper = file.with_name("helper.py")
    helper.write_text("anything = 1\n", encoding="utf-8")
    helper.chmod(0o666)


REFUSED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a file that others can write": (world_writable, "other users can write {file} (mode 0666)"),
    "a folder in which others can add helpers": (in_a_shared_folder, "other users can write {folder} (mode 0777)"),
    "a helper that others can write": (with_a_shared_helper, "other users can write {folder}/helper.py (mode 0666)"),
    "a file that is gone": (Path.unlink, "{file}: no such plugin file or folder (a module is named as module:Class)"),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins"
    folder.mkdir(mode=0o755)
    path = folder / "tiers.py"
    path.write_text(PLUGIN.format(name="Tiers"), encoding="utf-8")
    path.chmod(0o644)
    return path


def test_a_file_of_this_user_is_run(file: Path):
    assert scheduler_plugins({"Tiers": str(file)}, ["Tiers", "Installed"]) == ((str(file),), ())


@pytest.mark.parametrize(("spoil", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_a_file_that_another_user_can_have_written_is_not_run(file: Path, spoil: Callable[[Path], None], why: str):
    spoil(file)
    paths, [sentence] = scheduler_plugins({"Tiers": str(file)}, ["Tiers"])
    assert paths == ()
    because = why.format(file=file, folder=file.parent)
    assert sentence == f"plugin Tiers of the scheduler is not run: {because}. Give --plugins {file} to run it"


def test_a_module_is_not_looked_up_here():
    paths, [sentence] = scheduler_plugins({"Tiers": "mine:Tiers"}, ["Tiers"])
    assert (paths, "Give --plugins mine:Tiers" in sentence) == ((), True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_not_run(file: Path):
    os.chown(file, 12345, 12345)
    _, [sentence] = scheduler_plugins({"Tiers": str(file)}, ["Tiers"])
    assert f"{file} belongs to another user (uid 12345)" in sentence


async def test_explain_decides_again_with_the_plugins_of_the_pods_own_profile():
    async with a_server() as (server, client, placed):
        with private_home() as home:
            server.write_kubeconfig(home / "k")
            for name in ("Tiers", "Others"):
                (home / f"{name}.py").write_text(PLUGIN.format(name=name), encoding="utf-8")
                (home / f"{name}.py").chmod(0o644)
            (home / "Others.py").chmod(0o666)
            (home / "config.yaml").write_text(CONFIG, encoding="utf-8")

            async def explained(*arguments: str) -> str:
                with Program(*arguments, "--kubeconfig=k", home=home) as program:
                    assert await asyncio.to_thread(program.ended) == 0, program.err
                return "\n".join(program.out)

            await create_node(client, "one")
            flags = ["--kubeconfig=k", "--plugins=Tiers.py", "--plugins=Others.py", "--config=config.yaml"]
            with Program("run", *flags, "--leader-elect=false", home=home) as scheduler:
                await asyncio.to_thread(scheduler.ready)
                await create_pod(client, "web")
                await placed.refused({"web"})
                text = await explained("explain", "web")
                assert "Recomputed with profile default-scheduler" in text
                assert "Others" not in text
                assert "Tiers                 rejects" in await explained("why-not", "web", "one")
                (home / "Tiers.py").chmod(0o666)
                text = await explained("explain", "web")
                assert text.endswith(
                    "It was not decided again: plugin Tiers of the scheduler is not run: other users can write "
                    f"{home}/Tiers.py (mode 0666). Give --plugins {home}/Tiers.py to run it."
                )
