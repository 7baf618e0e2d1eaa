"""What everything stands on: clock, errors, logging. Imports nothing of ours."""
