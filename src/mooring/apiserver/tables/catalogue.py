"""Which columns kubectl prints for a resource."""

from __future__ import annotations

from mooring.apiserver.resources import Resource
from mooring.apiserver.tables.cluster import CLUSTER_COLUMNS
from mooring.apiserver.tables.columns import AGE, NAME, Column
from mooring.apiserver.tables.pods import POD_COLUMNS
from mooring.apiserver.tables.volumes import VOLUME_COLUMNS
from mooring.apiserver.tables.workloads import WORKLOAD_COLUMNS

_COLUMNS: dict[str, list[Column]] = {
    "pods": POD_COLUMNS,
    **WORKLOAD_COLUMNS,
    **CLUSTER_COLUMNS,
    **VOLUME_COLUMNS,
}
_PLAIN = [NAME, AGE]


def columns_for(row: Resource) -> list[Column]:
    if row.custom is not None:
        return row.custom.columns
    return _COLUMNS.get(row.storage, _PLAIN)
