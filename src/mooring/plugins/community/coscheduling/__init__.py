"""Coscheduling: the pods of a group are bound together, or none of them.

`pod_groups` has the custom resource, `members` which pods belong to a group, `failures` what is remembered of groups
that could not be placed, `plugin` the rules.
"""

from mooring.plugins.community.coscheduling.plugin import Coscheduling, CoschedulingArgs

__all__ = ["Coscheduling", "CoschedulingArgs"]
