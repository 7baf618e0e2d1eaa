"""VolumeBinding: a pod runs where its volumes are, or can be made.

`plugin` is the rule, `claims` sorts the pod's claims, `bound` looks at volumes that are bound already, `matching` finds
free volumes, `provisioning` asks where new ones can be made; `search` puts them together, `scoring` ranks by capacity.
`reservation` is what follows the choice of a node, `assumed` what the next pods see of it.
"""

from mooring.plugins.default.volume_binding.plugin import VolumeBinding, VolumeBindingArgs

__all__ = ["VolumeBinding", "VolumeBindingArgs"]
