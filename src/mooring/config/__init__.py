"""KubeSchedulerConfiguration: load, convert old versions to v1, default, check; all mistakes at once.

`load_configuration` is the way in; `model` is what comes out. `tree` reads the text, `upgrade` brings old versions to
v1, `plugin_sets` decides which plugins run where, `plugin_args` reads their arguments.
"""

from mooring.config.loading import convert, default_configuration, load_configuration
from mooring.config.model import (
    ClientConnection,
    Configuration,
    Converted,
    Extender,
    ExtenderTls,
    LeaderElection,
    Loaded,
    ManagedResource,
    PluginUse,
    ProfileConfiguration,
)

__all__ = [
    "ClientConnection",
    "Configuration",
    "Converted",
    "Extender",
    "ExtenderTls",
    "LeaderElection",
    "Loaded",
    "ManagedResource",
    "PluginUse",
    "ProfileConfiguration",
    "convert",
    "default_configuration",
    "load_configuration",
]
