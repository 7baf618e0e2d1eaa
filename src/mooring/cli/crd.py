"""`mooring crd …`: CustomResourceDefinitions of the kinds that plugins read."""

from __future__ import annotations

from typing import Any

import click

from mooring.cli.command_group import CommandGroup
from mooring.cli.common import plugin_named, plugins_option
from mooring.cli.output import print_yaml


@click.group(cls=CommandGroup)
def crd() -> None:
    """Print the CustomResourceDefinitions that a plugin needs.

    \b
    Example:
      mooring crd generate NodeCRDResourceFit | kubectl apply -f -
    """


@crd.command(short_help="Print the definitions of PLUGIN's custom kinds.")
@click.argument("plugin")
@plugins_option
def generate(plugin: str, plugins: tuple[str, ...]) -> None:
    """Print, as YAML, the definition of every custom kind that PLUGIN watches: its Python class is the source.

    \b
    Example:
      mooring crd generate NodeCRDResourceFit > crds.yaml
    """
    from mooring.base.errors import OperatorMistake
    from mooring.framework.definitions import definition_of
    from mooring.objects import CustomResource

    entry = plugin_named(plugin, plugins)
    kinds = [kind for kind in entry.object_types if issubclass(kind, CustomResource)]
    if not kinds:
        raise OperatorMistake(f"{plugin} watches no custom kind: its constructor takes no Objects[…] of one.")
    print_yaml("---\n".join(_yaml(definition_of(kind)) for kind in kinds))


def _yaml(document: dict[str, Any]) -> str:
    """As people write it: fields in the order given, and texts of several lines as lines."""
    import yaml

    from mooring.base.documents import readable_style

    class Readable(yaml.SafeDumper):
        pass

    Readable.add_representer(
        str,
        lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=readable_style(text)),
    )
    return yaml.dump(document, Dumper=Readable, sort_keys=False, width=120, allow_unicode=True)
