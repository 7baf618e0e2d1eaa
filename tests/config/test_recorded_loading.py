"""How the unmodified loader of kube-scheduler v1.36.4 loads hundreds of odd values, and how ours does.

`loader.jsonl.gz` holds one `{"text": …, "error": null | …}` a line: a file, and what decoding and validating it gave.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

from tests.config.files import load

from mooring.base.errors import OperatorMistake

RECORDED = Path(__file__).parent.parent / "data" / "oracle" / "loader.jsonl.gz"

STRICTER = {
    "disabled: [{name:": "an entry without name disables nothing",
    "pluginConfig: [{name:": "arguments without a plugin belong to no plugin",
    "retryPeriod:": "renewDeadline must exceed 1.2 × retryPeriod, or the election fails at start",
    "caData: [": "a list is no base64",
    "---\na: 1": "a second document would be ignored",
}
"""What we refuse though kube-scheduler's loader takes it: what the text holds, and why."""

LOOSER = {'"parallelism": 5.0': "YAML or JSON, 5.0 is a whole number"}


def is_refused(text: str) -> bool:
    try:
        load(text)
    except OperatorMistake:
        return True
    return False


def test_odd_values_are_judged_as_kube_scheduler_judges_them():
    with gzip.open(RECORDED, "rt", encoding="utf-8") as lines:
        recorded = [json.loads(line) for line in lines]
    assert len(recorded) > 800
    excused = 0
    for case in recorded:
        text, expected = case["text"], case["error"] is not None
        if is_refused(text) == expected:
            continue
        assert any(part in text for part in (LOOSER if expected else STRICTER)), case
        excused += 1
    assert excused < 20
