"""What does not change with scheduling: the process, the interpreter, the feature gates, the version."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from mooring import __version__
from mooring.framework.gate_table import GATES
from mooring.framework.gates import FeatureGates

MAJOR, MINOR = "1", "36"
"""Of the kube-scheduler whose behaviour Mooring follows."""

_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_BUILD = (
    "major",
    "minor",
    "git_version",
    "git_commit",
    "git_tree_state",
    "build_date",
    "go_version",
    "compiler",
    "platform",
)


def register_process(registry: CollectorRegistry, gates: FeatureGates) -> None:
    """Serve them with the others."""
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Facts(gates))


class _Facts(Collector):
    def __init__(self, gates: FeatureGates) -> None:
        self._gates = gates

    def collect(self) -> Iterator[Metric]:
        enabled = GaugeMetricFamily(
            "kubernetes_feature_enabled", "[BETA] Whether a feature gate is on.", labels=("name", "stage")
        )
        for gate in GATES.values():
            stage = "" if gate.stage == "GA" else gate.stage
            enabled.add_metric((gate.name, stage), float(self._gates.on(gate.name)))
        yield enabled
        build = GaugeMetricFamily(
            "kubernetes_build_info",
            "[BETA] Always 1. The Kubernetes version that this program follows, and what it was built with.",
            labels=_BUILD,
        )
        machine = platform.machine()
        where = f"{sys.platform}/{_MACHINES.get(machine, machine)}"
        version = f"v{MAJOR}.{MINOR}.0+mooring-{__version__}"
        built_by = f"python{platform.python_version()}"
        build.add_metric((MAJOR, MINOR, version, "", "", "", "", built_by, where), 1)
        yield build
        own = GaugeMetricFamily("mooring_build_info", "Always 1. Mooring's version.", labels=("version", "python"))
        own.add_metric((__version__, platform.python_version()), 1)
        yield own
