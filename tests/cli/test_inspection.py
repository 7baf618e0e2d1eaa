"""An operator's signal to a running scheduler."""

from __future__ import annotations

import signal

from tests.cli.programs import Program, private_home


def test_sigusr2_makes_it_dump_its_cache_and_run_on():
    with private_home() as home, Program("up", "--nodes=1", "--write-kubeconfig=k", home=home) as program:
        program.ready()
        program.process.send_signal(signal.SIGUSR2)
        assert "differences=0" in program.mentions("Compared the cache with the API server")
        program.mentions("Dump of cached NodeInfo")
        program.mentions("Dump of scheduling queue")
        assert program.end() == 0
