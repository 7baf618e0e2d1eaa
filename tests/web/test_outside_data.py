"""The page notes what plugins read of other systems, and from when it is."""

from __future__ import annotations

from tests.web.pages import mirrored
from tests.web.test_actions import connection_to
from tests.web.test_stream import NODE

from mooring.config import load_configuration
from mooring.framework import FeatureGates
from mooring.plugins.catalogue import catalogue
from mooring.web.mirror import live_mirror
from mooring.web.what_if import simulated
from mooring.web.what_if_request import WhatIfRequest

LOAD_AWARE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: TargetLoadPacking}]}}}]
"""


def test_a_file_without_the_loads_that_plugins_read_is_noted():
    with mirrored(configuration=LOAD_AWARE) as mirror:
        assert mirror.notes == ["TargetLoadPacking reads data of another system, which is not known here."]


async def test_a_cluster_that_runs_has_a_note_about_the_loads_that_plugins_read(server, capsys):
    server.load([NODE])
    registry = catalogue()
    configuration = load_configuration(LOAD_AWARE, source="the test", registry=registry).configuration
    async with live_mirror(connection_to(server), configuration, registry, FeatureGates()) as mirror:
        (note,) = mirror.notes
        assert note.startswith("TargetLoadPacking reads ")
        assert "not known here" not in note
    assert (
        'fetch data by themselves, beside those of a scheduler" plugins="TargetLoadPacking"' in capsys.readouterr().err
    )


def test_a_what_if_uses_the_loads_that_are_known_and_sends_no_request():
    with mirrored(configuration=LOAD_AWARE) as mirror, mirrored() as plain:
        for each, request in (
            (mirror, WhatIfRequest(drain=["node-1"])),
            (plain, WhatIfRequest(drain=["node-1"], config=LOAD_AWARE)),
        ):
            recomputation = each.recomputation
            found = simulated(
                recomputation.cluster,
                request,
                each.configuration,
                each.registry,
                recomputation.gates,
                {},
                recomputation.outside_data,
            )
            assert found["notes"] == ["TargetLoadPacking reads data of another system, which is not known here."]
