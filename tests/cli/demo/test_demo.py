"""`mooring demo`, as a user runs it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.cli.programs import SLOW, Program

WENT = {
    "by the highest label": r"^by-label +scorebylabel +node-3 +score 100 \(ScoreByLabel 100\)",
    "by a custom resource": r"^by-custom-resource +by-custom-resource +node-1 +(score 90|the only feasible node)",
    "to the only node with the label": r"^only-cpu-true-\S+ +sample-scheduler +node-2 +the only feasible node",
    "by the least traffic": r"^least-traffic +network-traffic +node-1 +score 29 \(NetworkTraffic 29\)",
    "at random, by a plugin": r"^random-by-plugin +random-plugin +node-[123] ",
    "at random, by a program of its own": r"^random-by-program +random-scheduler +node-[123] +the decision of another",
    "nowhere": r"^too-big +default-scheduler +\(pending\) +0/3 nodes are available: 3 Insufficient cpu\.",
}


# The demo creates the kind when its scheduler is at work already.
NOT_YET = "clusterscopedresources"


def test_the_demo_shows_where_each_pod_went_and_the_events_and_ends_well(home: Path):
    with Program("demo", home=home) as demo:
        assert demo.ended() == 0, demo.written()
        text = "\n".join(demo.out)
        for way, line in WENT.items():
            assert re.search(line, text, re.MULTILINE), f"{way}:\n{text}"
        assert "\nEvents" in text
        for reason in ("Scheduled", "FailedScheduling", "Pulling", "Started"):
            assert reason in text
        assert "pod [default/random-by-program] is successfully scheduled to node" in text
        assert "Done in" in text
        warnings = [line for line in demo.err if not line.startswith("I")]
        unexpected = [line for line in warnings if not any(words in line for words in (NOT_YET, *SLOW))]
        assert unexpected == []
