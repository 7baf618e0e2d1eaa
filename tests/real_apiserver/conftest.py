"""A real kube-apiserver for each worker, and for each test a cluster on it that holds nothing of the test before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from tests.apiserver.pod_group_requests import GATE_SETS
from tests.cli.programs import private_home
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.containers import removed
from tests.real_apiserver.control_plane import ControlPlane, with_gates
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


@pytest.fixture(scope="session")
def control_plane_of_groups() -> Iterator[ControlPlane]:
    """With all gates of pod groups."""
    with private_home() as folder, ControlPlane(folder, *with_gates(GATE_SETS["all"])) as running:
        yield running


@pytest.fixture
def cluster(control_plane: ControlPlane) -> Iterator[Cluster]:
    with private_home() as home, Cluster(control_plane, home) as empty:
        yield empty
        empty.wipe()


@pytest.fixture
def cluster_of_groups(control_plane_of_groups: ControlPlane) -> Iterator[Cluster]:
    with private_home() as home, Cluster(control_plane_of_groups, home) as empty:
        yield empty
        empty.wipe_groups()


@pytest.fixture(scope="session")
def image_root() -> Iterator[Path]:
    """What the image adds to a Python, made once."""
    with private_home() as folder:
        folder.chmod(0o755)
        yield built_root(folder / "image")
        removed(folder / "image")
