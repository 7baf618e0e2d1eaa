"""What everything stands on: clock, durations, errors, logging, documents, certificates. Imports nothing of ours."""
