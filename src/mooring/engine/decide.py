"""`decide`: the one function that live scheduler, simulator, explain, benchmark and conformance tests call."""

from __future__ import annotations

from mooring.base.errors import PluginFault
from mooring.engine.choose import best
from mooring.engine.cycle import EngineCycle
from mooring.engine.decision import Decision
from mooring.engine.feasible import Feasible, feasible
from mooring.engine.profile import Profile
from mooring.engine.what_if import PostFiltered, post_filter
from mooring.framework import Pod
from mooring.state import State


def decide(profile: Profile, pod: Pod, state: State, *, attempt: int = 1, seed: int = 0, start: int = 0) -> Decision:
    """Choose a node for the pod, or say why none will do. Pure: no I/O, no clock, no randomness.

    `seed` chooses among equally good nodes; `start` is where sampling begins (the last decision's `next_start`).
    """
    cycle = EngineCycle(profile, pod, state, attempt)
    found: Feasible | None = None
    try:
        found = feasible(cycle, start)
        decision = choose(cycle, found, seed) if len(found.nodes) else refuse(cycle, found)
    except PluginFault as fault:
        decision = Decision.failed(cycle, found, fault, start)
    cycle.end()
    profile.remember(decision)
    return decision


def choose(cycle: EngineCycle, found: Feasible, seed: int = 0) -> Decision:
    """The best of the feasible nodes."""
    return Decision.placed(cycle, found, best(cycle, found.nodes, seed))


def refuse(cycle: EngineCycle, found: Feasible) -> Decision:
    """Why no node will do, and what post_filter proposes."""
    rejected = found.rejected()
    helped = post_filter(cycle, rejected) if len(found.all_nodes) else PostFiltered()
    return Decision.refused(cycle, found, rejected, helped)
