"""The events of a watch with selectors, applied in order, lead to what a list with the same selectors returns."""

from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from mooring.apiserver.selection_predicate import SelectionPredicate, parse_predicate, split_field_selector
from mooring.apiserver.storage import Store
from mooring.apiserver.strategies.pod import PodStrategy
from mooring.apiserver.watch_server import selected_event_type

names = st.sampled_from(["a", "b", "c"])
namespaces = st.sampled_from(["one", "two"])
writes = st.lists(
    st.tuples(namespaces, names, st.sampled_from(["red", "blue", None]), st.sampled_from(["", "node-1", "node-2"])),
    max_size=25,
)
queries = st.sampled_from(
    [
        {},
        {"labelSelector": "colour=red"},
        {"labelSelector": "colour!=red"},
        {"labelSelector": "!colour"},
        {"fieldSelector": "spec.nodeName="},
        {"fieldSelector": "spec.nodeName!=,metadata.name!=a"},
        {"fieldSelector": "metadata.name=b", "labelSelector": "colour in (red,blue)"},
    ]
)


@given(writes, st.integers(0, 25), queries, st.sampled_from(["", "one"]))
def test_list_then_watch_equals_list_later(
    changes: list[tuple[str, str, str | None, str]], begin: int, query: dict[str, str], namespace: str
):
    store = Store()
    selection = parse_predicate(namespace, query, PodStrategy.fields)
    apply(store, changes[:begin])
    known = listed(store, selection)
    watch = store.watch("pods", store.revision)
    apply(store, changes[begin:])
    watch.end()
    for event in asyncio.run(watch.next_batch()):
        metadata = event.stored.document["metadata"]
        key = (metadata["namespace"], metadata["name"])
        match selected_event_type(event, selection):
            case "ADDED":
                assert key not in known
                known.add(key)
            case "MODIFIED":
                assert key in known
            case "DELETED":
                known.remove(key)
    assert known == listed(store, selection)


def apply(store: Store, changes: list[tuple[str, str, str | None, str]]) -> None:
    """Create, change, and (when the same state comes twice) delete."""
    for namespace, name, colour, node in changes:
        labels = {"colour": colour} if colour else {}
        metadata = {"namespace": namespace, "name": name, "labels": labels}
        document = {"metadata": metadata, "spec": {"nodeName": node}}
        current = store.stored("pods", namespace, name)
        if current is None:
            store.create("pods", document)
        elif current.document["spec"] == document["spec"] and current.document["metadata"]["labels"] == labels:
            store.delete("pods", current)
        else:
            store.update("pods", document, current)


def listed(store: Store, selection: SelectionPredicate) -> set[tuple[str, str]]:
    return {key for key, stored in store.scan("pods") if selection(stored.document)}


def test_a_field_selector_may_escape_its_marks():
    assert split_field_selector(r"a=b\,c,d!=e\=f,g==h") == [("a", True, "b,c"), ("d", False, "e=f"), ("g", True, "h")]
