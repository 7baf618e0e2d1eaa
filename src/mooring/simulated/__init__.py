"""Simulated nodes and the controllers of kube-controller-manager, as clients of any API server.

`cluster` runs it all and `cluster_file` reads its initial objects. `kubelet` runs the pods of simulated nodes;
`controllers` has one module per controller. `informer`, `work_queue`, `event_recorder` and `rest_mapper` are what
client-go is to them.
"""
