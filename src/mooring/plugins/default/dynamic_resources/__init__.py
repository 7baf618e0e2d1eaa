"""DynamicResources: devices that pods claim by ResourceClaims. `plugin` is the way in."""

from mooring.plugins.default.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
