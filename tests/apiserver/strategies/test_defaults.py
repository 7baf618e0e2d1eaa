"""Objects with few fields are stored as kube-apiserver stores them: all defaults, and all errors with its messages.

What kube-apiserver stores is recorded. `tests/real_apiserver/test_defaults.py` compares the record with a real one.
"""

from __future__ import annotations

import json

import pytest
from tests.apiserver.short_objects import SHORT
from tests.apiserver.stored import RECORDED, comparable, short

from mooring.apiserver import EmbeddedApiServer
from mooring.apiserver.status import StatusError

EXPECTED = json.loads(RECORDED.read_text(encoding="utf-8"))
VIEWS = {("events.k8s.io", "Event")}
"""Kinds that are another view of one in the table."""


@pytest.fixture(scope="module")
def server() -> EmbeddedApiServer:
    return EmbeddedApiServer()


@pytest.mark.parametrize("name", SHORT)
def test_a_short_object_is_stored_as_kube_apiserver_stores_it(name: str, server: EmbeddedApiServer):
    try:
        ours: object = comparable(server.store.create(short(name)))
    except StatusError as refused:
        ours = refused.message
    assert ours == EXPECTED[name]


def test_there_is_a_short_object_of_every_kind_that_is_stored():
    table = EmbeddedApiServer().registry.table
    stored = {(row.group, row.kind) for row in table if {"create", "list"} <= set(row.verbs)}
    there = {(each["apiVersion"].rpartition("/")[0], each["kind"]) for each in SHORT.values()}
    assert there == stored - VIEWS
