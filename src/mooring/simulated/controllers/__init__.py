"""Controllers of kube-controller-manager, as far as a simulated cluster needs them.

A `*_controller` module watches, syncs one key at a time from its work queue, and writes. What a sync has to do is
computed by a pure module beside it (`deployments`, `stateful_sets`, ...).
"""
