"""Commands with help pages in sections: options, connection options, examples."""

from __future__ import annotations

from typing import Final

import click

from twinstream.cli.help.completion import complete_names
from twinstream.cli.help.connection_option import ConnectionOption
from twinstream.cli.help.examples import EXAMPLES
from twinstream.cli.help.foreign_options import NO_ARGUMENT, options_advised

__all__ = ["HelpfulCommand"]

CONNECTION: Final = "Connection options (also before the command)"


class HelpfulCommand(click.Command):
    """A command with an example at the end of its help page, and with completion of names."""

    path: str = ""
    """The names of the command after `twinstream`."""
    example: str = ""
    original: click.Command | None = None
    """The command of which this is a copy."""

    @classmethod
    def of(cls, found: click.Command, path: str) -> HelpfulCommand:
        """Return a copy of a command. `path` are its names after `twinstream`."""
        made = cls(
            name=found.name,
            context_settings=found.context_settings,
            callback=found.callback,
            params=found.params,
            help=found.help,
            short_help=found.short_help,
            options_metavar=found.options_metavar,
            add_help_option=found.add_help_option,
            no_args_is_help=found.no_args_is_help,
            hidden=found.hidden,
            deprecated=found.deprecated,
        )
        made.path = path
        made.example = EXAMPLES.get(path, "")
        made.original = found
        complete_names(made)
        return made

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments. The error for one that does not exist says what to try."""
        advice = NO_ARGUMENT.get(self.path)
        ctx.allow_extra_args = ctx.allow_extra_args or advice is not None
        with options_advised(self.path, self):
            rest = super().parse_args(ctx, args)
        if rest and advice is not None and not ctx.resilient_parsing:
            raise click.UsageError(f"Unexpected argument {rest[0]!r}. {advice}", ctx)
        return rest

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what the original command has at the end of its page."""
        if self.original is not None:
            self.original.format_epilog(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of the command, then an example, then those for the connection."""
        own: list[tuple[str, str]] = []
        connection: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (connection if isinstance(param, ConnectionOption) else own).append(record)
        if own:
            with formatter.section("Options"):
                formatter.write_dl(own)
        if self.example:
            with formatter.section("Example"), formatter.indentation():
                for line in self.example.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent - 2}}{line}\n")
        if connection:
            with formatter.section(CONNECTION):
                formatter.write_dl(connection)
