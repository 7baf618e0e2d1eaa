"""What everything stands on: clock, durations, errors, logging, YAML documents. Imports nothing of ours."""
