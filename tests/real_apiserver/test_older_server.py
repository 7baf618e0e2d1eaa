"""The oldest Kubernetes that the real API server can behave as: what is absent there is named, and pods are scheduled.

kube-scheduler's account has no rights there on what there is not, and the server checks rights first.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.cli.programs import Program, private_home
from tests.real_apiserver.cluster import OURS_ALONE, Cluster
from tests.real_apiserver.control_plane import ADMIN, ControlPlane

OLDEST = "1.33"
ABSENT = ("deviceclasses", "resourceclaims", "resourceslices")


@pytest.fixture
def older() -> Iterator[Cluster]:
    with (
        private_home() as folder,
        ControlPlane(folder, f"--emulated-version={OLDEST}") as plane,
        private_home() as home,
        Cluster(plane, home) as cluster,
    ):
        yield cluster


def test_an_older_server_is_understood(older: Cluster):
    as_kube_scheduler = (f"--kubeconfig={older.control_plane.kubeconfig(ADMIN)}", "--as=system:kube-scheduler")
    with Program("doctor", *as_kube_scheduler, home=older.home) as doctor:
        assert doctor.ended() == 0, doctor.written()
        printed = "\n".join(doctor.out)
    assert f"which behaves as {OLDEST}; it has no devices by claims (resource.k8s.io/v1)" in printed
    assert all(f"the server has no {plural}.resource.k8s.io" in printed for plural in ABSENT)

    older.nodes(1)
    scheduler = older.scheduler(*OURS_ALONE)
    older.pod("old-school")
    assert older.bound("old-school") == "node-1"
    for plural in ABSENT:
        scheduler.mentions(f"the server has no {plural}.resource.k8s.io")
    assert scheduler.end() == 0, scheduler.written()
