"""Recordings: what a scheduler saw and decided, in a file that decides again.

`recorder` is called by the scheduler, `writer` writes on a thread of its own, `reading` reads; `rows` is the schema.
`mooring.replay` decides again.
"""

from mooring.recording.reading import RecordedDecision, RecordedState, Recording
from mooring.recording.recorder import Recorder
from mooring.recording.writer import DEFAULT_LIMIT_BYTES, RecordingWriter

__all__ = ["DEFAULT_LIMIT_BYTES", "RecordedDecision", "RecordedState", "Recorder", "Recording", "RecordingWriter"]
