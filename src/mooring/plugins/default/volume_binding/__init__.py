"""VolumeBinding: a pod runs where its volumes are, or can be made.

`plugin` is the rule, `pod_volume_claims` sorts the pod's claims, `bound_volumes` checks volumes that are bound already,
`matching` finds free volumes, `provisioning` where new ones can be provisioned; `search` combines them, `scoring` ranks
nodes by capacity. `volume_binder` assumes, writes and waits for the binding on the chosen node; `assumed_objects` lets
the next pods see it before the watch does.
"""

from mooring.plugins.default.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]
