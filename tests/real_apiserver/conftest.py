"""A real kube-apiserver for each worker, and for each test a cluster on it that holds nothing of the test before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.cli.programs import private_home
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.containers import removed
from tests.real_apiserver.control_plane import ControlPlane
from tests.real_apiserver.deployments import built_root

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Iterable[pytest.Item]) -> None:
    """Mark what is collected here; the hook is handed the tests of every folder."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.real)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    with private_home() as folder, ControlPlane(folder) as running:
        yield running


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    with private_home() as home, Cluster(control_plane, home) as empty:
        yield empty
        empty.wipe()


@pytest.fixture(scope="session")
def image_root() -> Iterator[Path]:
    """What the image adds to a Python, made once."""
    with private_home() as folder:
        folder.chmod(0o755)
        yield built_root(folder / "image")
        removed(folder / "image")
