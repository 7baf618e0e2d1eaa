"""Images on nodes, as nodes come, change and go."""

from __future__ import annotations

from mooring.state import State
from mooring.testing import a_node_object


def known(state: State, name: str) -> tuple[int, set[str]] | None:
    """Size, and the nodes that have it."""
    image = state.image(name)
    if image is None:
        return None
    by_view = {view.name for view in state.nodes if image.on(view)}
    by_mask = {name for name, has in zip(state.nodes.names, image.on_rows(state.nodes), strict=True) if has}
    assert by_view == by_mask
    assert image.node_count == len(by_view)
    return image.size_bytes, by_view


def test_an_image_is_known_while_some_node_lists_it():
    state = State()
    assert known(state, "app:1") is None
    state.set_node(a_node_object("a", images={"app:1": 7}))
    state.set_node(a_node_object("b"))
    assert known(state, "app:1") == (7, {"a"})
    state.set_node(a_node_object("b", images={"app:1": 7}))
    state.set_node(a_node_object("a", labels={"zone": "east"}))
    assert known(state, "app:1") == (7, {"b"})
    state.remove_node("b")
    assert known(state, "app:1") is None
    state.set_node(a_node_object("c"))  # on the row that became free
    assert known(state, "app:1") is None


def test_an_update_that_keeps_the_images_keeps_them():
    state = State()
    state.set_node(a_node_object("a", images={"app:1": 7}))
    state.set_node(a_node_object("a", images={"app:1": 7}, labels={"zone": "east"}))
    assert known(state, "app:1") == (7, {"a"})


def test_the_size_changes_only_with_the_last_node_that_has_it():
    state = State()
    state.set_node(a_node_object("a", images={"app:1": 7}))
    state.set_node(a_node_object("a", images={"app:1": 8}))
    assert known(state, "app:1") == (8, {"a"})
    state.set_node(a_node_object("b", images={"app:1": 9}))
    state.remove_node("a")
    assert known(state, "app:1") == (8, {"b"})


def test_many_nodes_that_keep_coming():
    state = State()
    for number in range(200):
        state.set_node(a_node_object(f"n{number}", images={"app:1": 7} if number % 2 else {}))
        if number % 50 == 49:
            assert known(state, "app:1") == (7, {f"n{odd}" for odd in range(1, number + 1, 2)})
