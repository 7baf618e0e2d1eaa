"""Plugins while the scheduler runs: how they are built, started, timed and stopped, and the services they are given."""
