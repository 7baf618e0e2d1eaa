"""What plugins know of a pod beside a decision about it: the sentences of their `explain`."""

from __future__ import annotations

from typing import Any

from mooring.base.foreign_code import described, is_its_own
from mooring.engine.profile import Profile
from mooring.framework import Pod

MOST_SENTENCES = 20
"""Of one plugin: people read them."""


def explanations(profile: Profile, pod: Pod) -> list[dict[str, Any]]:
    """By plugin, in the profile's order; plugins without anything to add are left out. A fault is a sentence, too."""
    found = []
    for plugin in profile.plugins:
        explain = getattr(plugin, "explain", None)
        if explain is None:
            continue
        try:
            sentences = [str(sentence) for sentence in explain(pod)][:MOST_SENTENCES]
        except BaseException as error:
            if not is_its_own(error):
                raise
            sentences = [f"its explain failed: {described(error)}"]
        if sentences:
            found.append({"plugin": plugin.name, "sentences": sentences})
    return found
