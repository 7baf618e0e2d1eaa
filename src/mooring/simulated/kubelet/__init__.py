"""The kubelets of all simulated nodes: registration, pod sync and status, node leases."""
