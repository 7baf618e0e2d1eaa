"""A group of commands: a mistyped one is refused with the nearest name, or with all that there are."""

from __future__ import annotations

from typing import Any

import click

from mooring.base.errors import did_you_mean

MOST_LISTED = 8


class CommandGroup(click.Group):
    """The class of every group of ours."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            hint = did_you_mean(args[0], known)
            if not hint and len(known) <= MOST_LISTED:
                hint = f" `{ctx.command_path}` has {', '.join(known)}."
            ctx.fail(f'there is no command "{args[0]}".{hint}')
        return super().resolve_command(ctx, args)
