"""The page notes what plugins read of other systems, and from when it is."""

from __future__ import annotations

from tests.web.pages import mirrored
from tests.web.test_actions import connection_to
from tests.web.test_stream import NODE

from mooring.config import load_configuration
from mooring.framework import FeatureGates
from mooring.plugins.catalogue import catalogue
from mooring.web.mirror import live_mirror

LOAD_AWARE = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{plugins: {multiPoint: {enabled: [{name: TargetLoadPacking}]}}}]
"""


def test_a_file_without_the_loads_that_plugins_read_is_noted():
    with mirrored(configuration=LOAD_AWARE) as mirror:
        assert mirror.notes == ["TargetLoadPacking reads data of another system, which is not known here."]


async def test_a_cluster_that_runs_has_a_note_about_the_loads_that_plugins_read(server):
    server.load([NODE])
    registry = catalogue()
    configuration = load_configuration(LOAD_AWARE, source="the test", registry=registry).configuration
    async with live_mirror(connection_to(server), configuration, registry, FeatureGates()) as mirror:
        (note,) = mirror.notes
        assert note.startswith("TargetLoadPacking reads ")
        assert "not known here" not in note
