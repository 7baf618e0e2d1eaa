"""Events about outside data: each problem once, few at a time, and nothing is lost while it cannot be written."""

from __future__ import annotations

from mooring.framework.standing_problems import MOST_NODES, StandingProblems


class Written:
    def __init__(self) -> None:
        self.may_write = True
        self.events: list[tuple[str, bool, str]] = []

    def write(self, node: str, is_warning: bool, reason: str, note: str) -> bool:
        if self.may_write:
            self.events.append((node, is_warning, reason))
        return self.may_write


def on(*nodes: str) -> dict[tuple[str, str], str]:
    return {(node, "Wrong"): "is wrong" for node in nodes}


def test_a_problem_that_could_not_be_written_is_written_as_soon_as_it_can():
    written = Written()
    problems = StandingProblems(written.write)
    written.may_write = False
    for _ in range(2):
        problems.on_nodes(on("one"))
        problems.failing("Failed", "hangs")
    written.may_write = True
    for _ in range(2):
        problems.on_nodes(on("one"))
        problems.failing("Failed", "hangs")
    assert written.events == [("one", True, "Wrong"), ("", True, "Failed")]


def test_a_recovery_is_written_only_after_a_warning():
    written = Written()
    problems = StandingProblems(written.write)
    problems.recovered("Recovered", "works")
    written.may_write = False
    problems.failing("Failed", "hangs")
    written.may_write = True
    problems.recovered("Recovered", "works")
    assert written.events == []


def test_few_nodes_have_an_event_at_a_time_and_the_next_follow_when_those_are_well():
    written = Written()
    problems = StandingProblems(written.write)
    names = [f"node-{number}" for number in range(2 * MOST_NODES)]
    for _ in range(2):
        problems.on_nodes(on(*names))
    assert [node for node, _, _ in written.events] == names[:MOST_NODES]
    problems.on_nodes(on(*names[1:]))
    assert [node for node, _, _ in written.events] == names[: MOST_NODES + 1]
