"""Random cases by family and seed: clusters and pods that make one plugin or another decide.

Case `number` of a family depends on family, seed and number alone. All objects are as the API server would hold them
after admission: defaulted and valid. Families of community plugins and pod groups have `variations` of recorded cases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mooring_conformance.generate.affinity import interpod_case
from mooring_conformance.generate.claims import dra_case
from mooring_conformance.generate.configurations import config_case
from mooring_conformance.generate.dice import Dice, Json
from mooring_conformance.generate.mixed import mixed_case
from mooring_conformance.generate.node_rules import nodeaffinity_case, taints_case
from mooring_conformance.generate.ports_and_images import images_case, ports_case
from mooring_conformance.generate.preemption import preemption_case
from mooring_conformance.generate.resources import resources_case
from mooring_conformance.generate.spreading import topologyspread_case
from mooring_conformance.generate.variations import variations
from mooring_conformance.generate.volumes import volumes_case

FAMILIES: Mapping[str, Callable[[Dice, str], Json]] = {
    "resources": resources_case,
    "nodeaffinity": nodeaffinity_case,
    "taints": taints_case,
    "ports": ports_case,
    "images": images_case,
    "topologyspread": topologyspread_case,
    "interpod": interpod_case,
    "volumes": volumes_case,
    "preemption": preemption_case,
    "dra": dra_case,
    "mixed": mixed_case,
    "config": config_case,
}


def generate(family: str, seed: str, number: int) -> Json:
    """One case."""
    make = FAMILIES.get(family) or variations(family).case
    return make(Dice(f"{family}:{seed}:{number}"), f"{family}-{seed}-{number:05d}")
