"""Benchmarks: `python -m mooring.bench` measures what a decision costs, in CPU time, on a simulated cluster."""
