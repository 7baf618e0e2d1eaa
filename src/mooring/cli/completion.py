"""`mooring completion`: what a shell sources, so that it completes commands and options."""

from __future__ import annotations

import click

from mooring.cli.output import print_lines

VARIABLE = "_MOORING_COMPLETE"
"""By which the script calls us back; click derives it from the program's name."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands and options.

    \b
    Example:
      mooring completion bash > ~/.local/share/bash-completion/completions/mooring
      source <(mooring completion zsh)
      mooring completion fish > ~/.config/fish/completions/mooring.fish
    """
    from click.shell_completion import get_completion_class

    from mooring.cli.main import cli

    script = get_completion_class(shell)
    assert script is not None, "click knows each of the choices"
    print_lines(script(cli, {}, "mooring", VARIABLE).source(), are_values_visible=True)
