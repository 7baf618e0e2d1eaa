"""Benchmarks: `python -m mooring.bench` measures what a decision costs, and what a create costs the embedded server."""
