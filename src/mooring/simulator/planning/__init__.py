"""What a cluster has room for, found by simulation: more pods (`fit`), a workload (`capacity`), pods of nodes that go
(`drain_check`).
"""
