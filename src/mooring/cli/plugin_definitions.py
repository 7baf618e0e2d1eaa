"""The custom kinds that configured plugins read, installed in an embedded cluster: their classes are the definitions.

A definition that is there already, such as one of the cluster file, stays as it is. One that was installed here follows
its class when the plugins are reloaded.
"""

from __future__ import annotations

from typing import Any

from mooring.base.errors import ApiError
from mooring.cli.output import print_line
from mooring.client import ApiClient, Connection
from mooring.config import Configuration
from mooring.framework.definitions import definition_of
from mooring.framework.registry import Registry, all_object_types
from mooring.objects import CustomResource
from mooring.objects.meta import Kind

DEFINITIONS = Kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", False)


class PluginDefinitions:
    """What was installed in one cluster."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._installed: dict[str, dict[str, Any]] = {}

    async def install(self, configuration: Configuration, registry: Registry) -> None:
        """Install what the configuration's plugins read and the cluster lacks. Raises what `definition_of` raises."""
        kinds = custom_kinds(configuration, registry)
        if not kinds:
            return
        async with ApiClient(self._connection) as client:
            for kind, plugins in kinds.items():
                if verb := await self._install(client, kind):
                    print_line(f"{verb} the definition of {kind.KIND.name}, which {', '.join(plugins)} reads.")

    async def _install(self, client: ApiClient, kind: type[CustomResource]) -> str:
        """What was done: `Installed`, `Updated` or nothing."""
        name = kind.KIND.name
        if name not in self._installed and await _exists(client, name):
            return ""
        definition = definition_of(kind)
        if name not in self._installed:
            await client.create(DEFINITIONS, definition)
        elif self._installed[name] != definition:
            await client.patch(DEFINITIONS, name, None, {"spec": definition["spec"]}, form="merge")
        else:
            return ""
        verb = "Updated" if name in self._installed else "Installed"
        self._installed[name] = definition
        return verb


def custom_kinds(configuration: Configuration, registry: Registry) -> dict[type[CustomResource], list[str]]:
    """The custom kinds that plugins of the profiles read, each with those plugins."""
    names = {use.name for profile in configuration.profiles for uses in profile.points.values() for use in uses}
    found: dict[type[CustomResource], list[str]] = {}
    for name in sorted(names):
        entry = registry.get(name)
        assert entry is not None, "the configuration was checked against this registry"
        for kind in entry.object_types:
            if issubclass(kind, CustomResource):
                found.setdefault(kind, []).append(name)
    return found


def saved_kinds(configuration: Configuration, registry: Registry) -> dict[Kind, dict[str, Any]]:
    """The custom kinds to list of a cluster: those that plugins of the configuration or of `--plugins` read, with the
    definitions of their classes."""
    named = all_object_types(entry for entry in registry if entry.paths)
    return {
        kind.KIND: definition_of(kind)
        for kind in (*custom_kinds(configuration, registry), *named)
        if issubclass(kind, CustomResource)
    }


async def _exists(client: ApiClient, name: str) -> bool:
    try:
        await client.get(DEFINITIONS, name)
    except ApiError as error:
        if error.code == 404:
            return False
        raise
    return True
