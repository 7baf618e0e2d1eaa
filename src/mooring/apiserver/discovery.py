"""Discovery documents: versions, groups and resources, in the legacy and the aggregated form."""

from __future__ import annotations

from collections.abc import Sequence

from mooring.apiserver.documents import Document
from mooring.apiserver.resources import Resource, ResourceTable

KUBERNETES_VERSION = "v1.36.4"
AGGREGATED = "g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
AGGREGATED_TYPE = f"application/json;{AGGREGATED}"


def version() -> Document:
    major, minor, _ = KUBERNETES_VERSION.removeprefix("v").split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"{KUBERNETES_VERSION}+mooring",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "cpython",
        "platform": "any",
    }


def core_versions(address: str) -> Document:
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group(name: str, versions: Sequence[str]) -> Document:
    served = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": served, "preferredVersion": served[0]}


def groups(table: ResourceTable) -> Document:
    listed = [_group(name, versions) for name, versions in table.group_versions().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(table: ResourceTable, name: str) -> Document | None:
    versions = table.group_versions().get(name)
    if not name or not versions:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(table: ResourceTable, group: str, version: str) -> Document | None:
    rows = [row for row in table if (row.group, row.version) == (group, version)]
    if not rows:
        return None
    listed: list[Document] = []
    for row in rows:
        listed.append(_resource(row))
        for sub in row.subresources:
            entry: Document = {
                "name": f"{row.plural}/{sub.name}",
                "singularName": "",
                "namespaced": row.namespaced,
                "kind": sub.kind,
                "verbs": list(sub.verbs),
            }
            if sub.version:
                entry |= {"group": sub.group or "", "version": sub.version}
            listed.append(entry)
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": rows[0].api_version,
        "resources": listed,
    }


def _resource(row: Resource) -> Document:
    entry: Document = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    return entry


def aggregated(table: ResourceTable, *, core: bool) -> Document:
    """`/api` (core) or `/apis` in one document: what current kubectl requests first."""
    items: list[Document] = []
    for name, versions in table.group_versions().items():
        if bool(name) == core:
            continue
        metadata: Document = {"creationTimestamp": None}
        if name:
            metadata["name"] = name
        listed = [
            {
                "version": version,
                "freshness": "Current",
                "resources": [_aggregated(row) for row in table if (row.group, row.version) == (name, version)],
            }
            for version in versions
        ]
        items.append({"metadata": metadata, "versions": listed})
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _kind(group: str, version: str, kind: str) -> Document:
    return {"group": group, "version": version, "kind": kind}


def _aggregated(row: Resource) -> Document:
    entry: Document = {
        "resource": row.plural,
        "responseKind": _kind(row.group, row.version, row.kind),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": list(row.verbs),
    }
    if row.short_names:
        entry["shortNames"] = list(row.short_names)
    if row.categories:
        entry["categories"] = list(row.categories)
    if row.subresources:
        entry["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": _kind(sub.group or row.group, sub.version or row.version, sub.kind),
                "verbs": list(sub.verbs),
            }
            for sub in row.subresources
        ]
    return entry
