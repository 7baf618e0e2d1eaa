"""The rows of a recording: one JSON object a line. docs/recording.md describes them for readers of the file.

A segment begins with a `SegmentHeader`, the state as `Set`, `Assumed` and `Nominated` rows, and `Opened`. Then come the
changes and the decisions, in the order in which the scheduler saw and made them.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from mooring import __version__
from mooring.engine.evidence import EvidenceRecord
from mooring.objects.core import PodStatus

VERSION = 1
MARK = "recording"
BOUND, REFUSED, PREEMPTED, FAILED, HELD = "bound", "refused", "preempted", "failed", "held"
"""How a decision ended: with a node; without one; with victims to evict; by a plugin's error; before it was made."""


Time = Annotated[float, msgspec.Meta(ge=0.0, le=253_402_300_799.0)]
"""In seconds since the epoch, until the end of the year 9999."""


class SegmentHeader(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The first line of a segment, and so of the file."""

    mooring: str = MARK
    version: int = VERSION
    segment: int = 1
    """Counted from the beginning, also when the oldest are gone."""
    time: Time = 0.0
    server: str = ""
    profiles: list[str] = []
    kinds: list[str] = []
    """The kinds that the plugins read, as `kubectl get` names them."""
    configuration: dict[str, Any] = {}
    """Without credentials."""
    feature_gates: dict[str, bool] = {}
    """Those that are not as they are by default."""
    annotations: list[str] = []
    """Which were kept, besides those that scheduling reads."""
    mooring_version: str = __version__


class RecordedRow(
    msgspec.Struct, tag_field="row", rename="camel", omit_defaults=True, frozen=True, kw_only=True, gc=False
):
    """Anything but a header."""

    time: Time = 0.0
    """When the scheduler saw it."""


class Set(RecordedRow, tag="set", kw_only=True, frozen=True):
    """An object was added or changed."""

    api_version: str
    kind: str
    object: msgspec.Raw
    place: int = -1
    """Of a node in an opening state: its row in the node table, which orders nodes of equal score."""


class Deleted(RecordedRow, tag="deleted", kw_only=True, frozen=True):
    """An object was deleted."""

    api_version: str
    kind: str
    key: str
    """`namespace/name`, or the name."""
    uid: str = ""


class Confirmed(RecordedRow, tag="confirmed", kw_only=True, frozen=True):
    """The watch shows an assumed pod on its node. The rest of the pod is as it was."""

    uid: str
    node: str
    resource_version: str = ""
    labels: dict[str, str] | None = None
    """None: as they were."""
    status: PodStatus


class Assumed(RecordedRow, tag="assumed", kw_only=True, frozen=True):
    """The scheduler counts a pod on the node that it decided for, before the watch shows it there."""

    uid: str
    node: str


class Forgotten(RecordedRow, tag="forgotten", kw_only=True, frozen=True):
    """It counts the pod there no more: the placement was undone."""

    uid: str


class Moved(RecordedRow, tag="moved", kw_only=True, frozen=True):
    """The pod is now the last of its node's: the order of pods breaks ties of victims."""

    uid: str


class Nominated(RecordedRow, tag="nominated", kw_only=True, frozen=True):
    """A pod is nominated to a node; "": to none any more."""

    uid: str
    node: str = ""


class Decided(RecordedRow, tag="decision", kw_only=True, frozen=True):
    """A decision. Its evidence names the pod, and has what it depended on besides the state."""

    number: int = 0
    """Counted from the beginning."""
    outcome: str
    """`refused` also for a pod that fits the node of the evidence, and whose group does not fit."""
    is_assumed: bool = False
    """The pod was assumed on the node of the decision: the next decision counts it there."""
    is_extended: bool = False
    """Extenders took part: what they returned is not recorded."""
    is_limited: bool = False
    """Only the nodes of a placement were candidates: which is not recorded."""
    evidence: EvidenceRecord


class Held(RecordedRow, tag="held", kw_only=True, frozen=True):
    """An attempt that ended before a decision could be made."""

    number: int = 0
    pod: str
    uid: str
    attempt: int = 0
    message: str = ""


class Noted(RecordedRow, tag="noted", kw_only=True, frozen=True):
    """Why a decision for a node was not carried out."""

    uid: str
    notes: dict[str, Any]


class MissingDecisions(RecordedRow, tag="gap", kw_only=True, frozen=True):
    """The writer fell behind: so many decisions are missing here. The changes follow, each object's last one."""

    decisions: int


class Configured(RecordedRow, tag="configured", kw_only=True, frozen=True):
    """Another configuration was adopted."""

    profiles: list[str]
    kinds: list[str]
    configuration: dict[str, Any]
    feature_gates: dict[str, bool] = {}


class Opened(RecordedRow, tag="opened", kw_only=True, frozen=True):
    """The opening state is complete."""

    objects: int = 0
    freed: list[int] = []
    """Rows of the node table that are free, the next to be used last."""
    places: int = 0
    """How many rows the node table has."""


class Closed(RecordedRow, tag="closed", kw_only=True, frozen=True):
    """The scheduler ended: the recording is whole."""

    dropped: int = 0
    """Decisions that are missing."""


AnyRow = (
    Set
    | Deleted
    | Confirmed
    | Assumed
    | Forgotten
    | Moved
    | Nominated
    | Decided
    | Held
    | Noted
    | MissingDecisions
    | Configured
    | Opened
    | Closed
)


def plain(value: object) -> object:
    """A number of NumPy's, from a plugin's score; anything else as its text."""
    return value.item() if hasattr(value, "item") else str(value)


encode = msgspec.json.Encoder(enc_hook=plain).encode
DECISION_PREFIXES = (b'{"row":"decision"', b'{"row":"held"')
"""How lines of decisions begin: they are found without decoding the others."""
HEADER_PREFIX = b'{"mooring":"recording"'
