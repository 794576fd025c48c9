"""The command groups. Subcommands are imported when they are used, so that help is instant."""

from __future__ import annotations

import importlib
from typing import Final

import click

from js_cli.failures import reported

COMMANDS: Final = {
    "apply": "js_cli.apply:apply",
    "consume": "js_cli.consume:consume",
    "demo": "js_cli.demo.command:demo",
    "plan": "js_cli.plan:plan",
    "pub": "js_cli.pub:pub",
    "schema": "js_cli.schema:schema",
    "size": "js_cli.size:size",
    "stream": "js_cli.groups:stream",
    "validate": "js_cli.validate:validate",
}
STREAM_COMMANDS: Final = {
    "info": "js_cli.stream_info:info",
    "ls": "js_cli.stream_list:ls",
}


class LazyGroup(click.Group):
    """A group whose subcommands are named as ``module:attribute``.

    Errors of the SDK that a subcommand raises end as one line on standard error.
    """

    targets: dict[str, str]

    def __init__(self, name: str, targets: dict[str, str], help: str) -> None:
        settings = {"help_option_names": ["-h", "--help"]}
        super().__init__(name=name, help=help, context_settings=settings)
        self.targets = targets

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in alphabetical order."""
        return sorted(self.targets)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the subcommand ``cmd_name``."""
        target = self.targets.get(cmd_name)
        if target is None:
            return None
        module, _, attribute = target.partition(":")
        found = getattr(importlib.import_module(module), attribute)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> object:
        """Run the subcommand and turn errors of the SDK into one readable line."""
        with reported():
            return super().invoke(ctx)


stream = LazyGroup("stream", STREAM_COMMANDS, "Look at the streams of a server.")

twinstream = LazyGroup(
    "twinstream",
    COMMANDS,
    "NATS JetStream from the command line.\n\n"
    "Exit codes: 0 all well, 1 problems found or the work failed, 2 wrong usage.",
)
twinstream = click.version_option(package_name="twinstream")(twinstream)
