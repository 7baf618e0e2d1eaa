"""DynamicResources: devices that pods claim by ResourceClaims.

`plugin` has the extension points and reads from top to bottom. `pod_claims` finds the claims of a pod and holds what a
cycle knows of them; `extended_resources` turns requests for extended resources into a claim.

To allocate, `device_requests` resolves what a claim requests, `resource_slices` lists the devices that a node can use,
`allocated_devices` knows which of them are taken, `shared_counters`, `consumable_capacity` and `device_constraints`
limit the choice, and `allocator` searches. `allocation_results` turns what it found into the claim's allocation.

In pre_bind, `claim_binder` writes the allocation and the reservation, and `binding_conditions` waits for drivers.
`features` reads the feature gates.
"""

from mooring.plugins.default.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
