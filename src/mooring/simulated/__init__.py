"""Nodes without machines and the controllers that make workloads of pods, as clients of any API server.

`cluster` runs it all, `cluster_file` reads what a cluster starts with, `kubelets` run pods, `workloads` make and
replace them.
"""
