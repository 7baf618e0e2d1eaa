"""What plugins are handed is what the framework promises them. The signatures are for the type checker."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.engine.cycle import PluginCycle
from mooring.engine.post_filter import NodeDiagnosis
from mooring.engine.what_if import EngineWhatIf
from mooring.framework import Cycle, Diagnosis, NodeRows, NodeView, Tally, WhatIf
from mooring.state import Rows, RowView
from mooring.state.tallies import StandingTally


def promised(
    cycle: PluginCycle, evidence: NodeDiagnosis, rows: Rows, view: RowView, tally: StandingTally, what_if: EngineWhatIf
) -> tuple[Cycle, Diagnosis, NodeRows, NodeView, Tally, WhatIf]:
    """Type-checks only if each has the shape of its promise."""
    return cycle, evidence, rows, view, tally, what_if


@pytest.mark.parametrize(
    ("promise", "kept"),
    [
        (Cycle, PluginCycle),
        (Diagnosis, NodeDiagnosis),
        (NodeRows, Rows),
        (NodeView, RowView),
        (Tally, StandingTally),
        (WhatIf, EngineWhatIf),
    ],
)
def test_everything_promised_is_there(promise: Any, kept: Any) -> None:
    public = {name for name in vars(promise) if not name.startswith("_")}
    assert public
    assert {name for name in public if not hasattr(kept, name)} == set()
