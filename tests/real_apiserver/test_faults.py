"""Any number of faults, one after the other, while pods come and go: none is lost, bound twice or placed without room.

A seed makes the order of faults; `MOORING_FAULTS=1000 MOORING_FAULTS_SEED=7 make test-real PYTEST_ARGS="-k faults"`.
"""

from __future__ import annotations

import os

import pytest
from tests.real_apiserver.bad_network import BadNetwork
from tests.real_apiserver.cluster import Cluster
from tests.real_apiserver.trouble import EACH, Trouble, some_faults

COUNT = int(os.environ.get("MOORING_FAULTS", 2 * len(EACH)))
SEED = int(os.environ.get("MOORING_FAULTS_SEED", "1"))
LOOK_EVERY = 10
"""After so many faults the world holds still until all is settled."""


def test_after_many_faults_every_pod_that_there_is_room_for_has_one_place(cluster: Cluster):
    with BadNetwork(cluster.control_plane.port) as network:
        trouble = Trouble(cluster, network, SEED)
        trouble.start()
        for number, fault in enumerate(some_faults(COUNT, trouble.chance), start=1):
            try:
                trouble.some_come_and_some_go()
                fault(trouble)
                trouble.check()
                if number % LOOK_EVERY == 0 or number == COUNT:
                    trouble.check_settled()
            except AssertionError as error:
                programs = f"{trouble.scheduler.written()}\n\nkubelets:\n{trouble.kubelets.written()}"
                pytest.fail(f"fault {number} of seed {SEED}, {fault.__name__}: {error}\n{programs}")
        for program in (trouble.scheduler, trouble.kubelets):
            assert program.end() == 0, program.written()
            assert "Traceback" not in program.written()
        cluster.clear()
