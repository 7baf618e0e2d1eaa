"""The document about one pod: what the API server shows, what a scheduler has recorded, the pod decided again.

`mooring explain -o json` prints it, and the page serves it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from mooring.base.errors import Fault
from mooring.explain import summary, waited
from mooring.framework import Pod
from mooring.why.pods import recomputed
from mooring.why.recomputation import Recomputation

ENDED = ("Succeeded", "Failed")
CHOSEN = ("waiting on permit", "binding")
"""Where pods are that have their node already: they are not decided again."""

Document = dict[str, Any]


class DecidesBy(NamedTuple):
    """How a scheduler decides."""

    configuration: Document | None = None
    """None: it is not known."""
    gates: Mapping[str, bool] = {}
    """The feature gates that are not as by default."""
    plugin_paths: Mapping[str, str] = {}
    """By plugin that is not installed: what `--plugins` named, an absolute path or module:Class."""


class Recorded(NamedTuple):
    """What the schedulers of this user know about a pod."""

    known: Document
    problems: list[str]
    """Sentences: why a scheduler could not add more."""
    is_silent: bool
    """A scheduler runs, and returned nothing about pods."""
    decides_by: DecidesBy = DecidesBy()
    """Of the scheduler that serves the pod."""

    @property
    def problem(self) -> str | None:
        return self.problems[0] if self.is_silent else None

    def document(self) -> Document:
        return {"isUnresponsive": True, "problem": self.problem} if self.is_silent else self.known


def known(pod: Pod) -> Document:
    """By the API server."""
    found: Document = {
        "pod": pod.key,
        "profile": pod.spec.scheduler_name,
        "node": pod.spec.node_name or None,
        "phase": pod.status.phase,
    }
    if (condition := pod.condition("PodScheduled")) is not None and condition.status == "False" and condition.message:
        found["condition"] = {"reason": condition.reason, "message": condition.message}
    return found


def recorded(
    responses: Sequence[Document], problems: Sequence[str], pod: Pod, *, is_unresponsive: bool = False
) -> Recorded:
    """The responses of explain sockets, read for this pod."""
    with of_this_version():
        found = _known_by(responses, pod.uid)
        silence = [_silence(each) for each in responses if "heldUp" in each or "error" in each]
        decides_by = decides_by_of(responses, pod)
    is_silent = "decision" not in found and "gating" not in found and (bool(silence) or is_unresponsive)
    return Recorded(found, [*silence, *problems], is_silent, decides_by)


def explained(
    recomputation: Recomputation, pod: Pod, found: Document, most_nodes: int | None, notes: Sequence[str] = ()
) -> Document:
    """`found`, and the pod decided again where that explains it."""
    if not is_decided_again(pod, found):
        return found
    again = recomputed(recomputation, pod, most_nodes, found.get("servedProfiles", ()))
    return found | {"recomputed": again | ({"notes": list(notes)} if notes else {})}


def is_decided_again(pod: Pod, found: Document) -> bool:
    """Whether a decision that is taken now explains it."""
    return not found.get("isUnresponsive") and pod.status.phase not in ENDED and found.get("queue") not in CHOSEN


def with_summary(found: Document) -> Document:
    """And the reason in one line, where there is one."""
    with of_this_version():
        reason, before = summary(found), waited(found)
    return {**found, **({"summary": reason} if reason else {}), **({"waited": before} if before else {})}


@contextlib.contextmanager
def of_this_version() -> Iterator[None]:
    """A scheduler of another version may respond in another shape."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"{type(error).__name__}: {error}"
        raise Fault(
            f"the scheduler's response cannot be decoded ({what}); is it of another version of Mooring?"
        ) from error


def decides_by_of(responses: Sequence[Document], pod: Pod) -> DecidesBy:
    """How the scheduler here decides that serves the pod; where none of them does: the first."""
    found = [response for response in responses if response.get("configuration")]
    serving = [response for response in found if pod.spec.scheduler_name in _names(response["configuration"])]
    for response in serving or (found if served_by(responses) else ()):
        return decides_by(response)
    return DecidesBy()


def decides_by(response: Document) -> DecidesBy:
    """Of a response with a configuration."""
    return DecidesBy(
        dict(response["configuration"]), dict(response.get("featureGates", ())), dict(response.get("pluginPaths", ()))
    )


def _names(configuration: Document) -> list[str | None]:
    return [each.get("schedulerName") for each in configuration.get("profiles", ())]


def _silence(response: Document) -> str:
    """Why a scheduler that could be reached knows nothing about pods now."""
    if "error" in response:
        return f"the scheduler responded with an error: {response['error']}"
    held_up = response["heldUp"]
    if held_up is None:
        return "the scheduler is busy and has not responded in time; try again"
    by = f"plugin {held_up['plugin']} blocks it" if held_up["plugin"] else "it is blocked"
    since = f"for {held_up['seconds']:g} s"
    return f"the scheduler does not respond: {by} in {held_up['method']} at {held_up['at']}, {since} now."


def _known_by(responses: Sequence[Document], uid: str) -> Document:
    """What the schedulers know of the pod with this uid."""
    found: Document = {}
    if served := served_by(responses):
        found["servedProfiles"] = sorted(served)
    for response in responses:
        if (gating := response.get("gating")) and gating["uid"] == uid:
            found["gating"] = gating
        if plugins := response.get("plugins"):
            found["plugins"] = plugins
        if response.get("found") and response["decision"]["uid"] == uid:
            found |= {"decision": response["decision"], "queue": response["queue"]}
            return found | ({"nextAttempt": response["nextAttempt"]} if "nextAttempt" in response else {})
    return found


def served_by(responses: Sequence[Document]) -> set[str]:
    """The schedulerNames that schedulers here serve; empty where one of them does not show it."""
    known = [response.get("profiles") for response in responses]
    # Two replicas on one machine serve the same.
    return {name for names in known for name in names or ()} if all(isinstance(each, list) for each in known) else set()
