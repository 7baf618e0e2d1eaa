"""`mooring bench e2e`: schedulers measured one after the other on a real API server.

`drain` measures one run; `contenders` are what is measured, `cluster` is where. `rounds` runs them in turn, `summary`
computes medians and ratios, `tables` and `picture` show them.
"""
