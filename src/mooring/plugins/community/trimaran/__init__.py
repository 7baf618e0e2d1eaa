"""Trimaran: scores by the measured load of nodes.

`load_sources` fetch measurements (a load watcher, Prometheus, the metrics API), `load_collector` publishes them and
drops what is stale, `resource_statistics` reads them. Each plugin is a file.
"""

from mooring.plugins.community.trimaran.load_variation_risk_balancing import LoadVariationRiskBalancing
from mooring.plugins.community.trimaran.low_risk_over_commitment import LowRiskOverCommitment
from mooring.plugins.community.trimaran.peaks import Peaks
from mooring.plugins.community.trimaran.target_load_packing import TargetLoadPacking

__all__ = ["LoadVariationRiskBalancing", "LowRiskOverCommitment", "Peaks", "TargetLoadPacking"]
