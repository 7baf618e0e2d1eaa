"""The record of what kube-apiserver stores of short objects is what the real one stores.

With RECORD_STORED=1 the record is written again.
"""

from __future__ import annotations

import json
import os

from tests.apiserver.short_objects import SHORT, Document
from tests.apiserver.stored import RECORDED, comparable, short
from tests.real_apiserver.control_plane import Api, ApiError, ControlPlane

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.resources import ResourceTable


def path_of(table: ResourceTable, document: Document) -> str:
    row = table.by_kind(document["apiVersion"], document["kind"])
    assert row is not None
    start = f"/apis/{row.api_version}" if row.group else f"/api/{row.api_version}"
    return f"{start}/namespaces/default/{row.plural}" if row.namespaced else f"{start}/{row.plural}"


def stored(api: Api, path: str, document: Document) -> Document | str:
    """The object as it is stored, or why it is refused. It is deleted again."""
    try:
        made: Document = api.create(path, document)
    except ApiError as error:
        return str(json.loads(str(error).partition(": ")[2])["message"])
    remove(api, f"{path}/{made['metadata']['name']}", made)
    return comparable(made)


def remove(api: Api, path: str, made: Document) -> None:
    """For good: there is no controller that would clear finalizers."""
    if made["metadata"].get("finalizers"):
        api.merge(path, {"metadata": {"finalizers": None}})
    api.delete_if_there(path)
    if made["kind"] == "Namespace":
        api.request(
            "PUT",
            f"{path}/finalize",
            {**made, "spec": {"finalizers": []}, "metadata": {"name": made["metadata"]["name"]}},
        )


def test_kube_apiserver_stores_what_is_recorded(control_plane: ControlPlane):
    table = EmbeddedApiServer().registry.table
    # A LimitRange counts for pods of its namespace a moment longer than it exists: it comes last.
    names = sorted(SHORT, key=lambda name: (SHORT[name]["kind"] == "LimitRange", name))
    found = {name: stored(control_plane.api, path_of(table, document := short(name)), document) for name in names}
    if os.environ.get("RECORD_STORED"):
        RECORDED.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    assert found == json.loads(RECORDED.read_text(encoding="utf-8"))
