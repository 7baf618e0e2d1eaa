"""`mooring bench scheduler-perf`: upstream's scheduler benchmark for any scheduler command.

Kubernetes describes its scheduler benchmark in workload files (`performance-config.yaml` and templates beside it).
They are read here unchanged and run against a real API server, with the scheduler as a process of its own.

`workload_files` reads them, `operations` has their steps, `templates` renders the objects, `selection` chooses the
workloads and explains which cannot run, `execution` runs the steps of one, `measuring` collects what upstream collects,
`running` starts clusters and schedulers, `reporting` has the tables.
"""
