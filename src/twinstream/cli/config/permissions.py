"""`twinstream permissions`: print the permissions that a user needs for given operations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

import click

from twinstream.cli.screen import print_json, print_text

if TYPE_CHECKING:
    from twinstream.core.client.operation import Operation
    from twinstream.permissions import Permissions

_NEXT: Final = "+"


class _WithOperations(click.Command):
    """A command whose help lists the operations."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the usage of each operation below the options."""
        from twinstream.permissions import operation_usages

        with formatter.section("Operations"):
            for usage in operation_usages():
                formatter.write_text(usage)


@click.command(cls=_WithOperations, short_help="Show the subjects that a user must be allowed.")
@click.argument("operations", nargs=-1, required=True, metavar="OPERATION ARGUMENT... [+ ...]")
@click.option(
    "--format",
    "form",
    type=click.Choice(["nats-conf", "json", "jwt"]),
    default="nats-conf",
    show_default=True,
    help="For a configuration file, as JSON, or as the claims of a user's JWT.",
)
@click.option("--domain", metavar="NAME", help="JetStream domain that the application uses.")
@click.option("--prefix", metavar="SUBJECT", help="API prefix that the application uses.")
@click.option(
    "--inbox-prefix",
    default="_INBOX",
    metavar="SUBJECT",
    show_default=True,
    help="Inbox prefix of the application; a separate one hides responses from other users.",
)
@click.option("--js-ack-fc-v2", is_flag=True, help="The server has that option (2.14).")
def permissions(
    operations: tuple[str, ...],
    form: str,
    domain: str | None,
    prefix: str | None,
    inbox_prefix: str,
    js_ack_fc_v2: bool,
) -> None:
    """Print the permissions that a user needs for the operations, and no others.

    The name * stands for any stream or consumer. No server is needed.

    \b
    twinstream permissions consume ORDERS worker
    twinstream permissions consume ORDERS worker + publish 'invoices.>' --format json
    """  # noqa: D301  # click needs the backspace character
    from twinstream.errors import BadArgument
    from twinstream.permissions import permissions as permissions_for

    try:
        found = permissions_for(
            *_operations(operations),
            domain=domain,
            prefix=prefix,
            inbox_prefix=inbox_prefix,
            second_form=js_ack_fc_v2,
        )
    except BadArgument as error:
        raise click.UsageError(str(error)) from error
    _print(found, form)


def _operations(words: tuple[str, ...]) -> list[Operation]:
    from twinstream.permissions import operation

    groups = itertools.groupby(words, lambda word: word == _NEXT)
    return [operation(*group) for separates, group in groups if not separates]


def _print(found: Permissions, form: str) -> None:
    match form:
        case "json":
            print_json(found.as_json())
        case "jwt":
            print_json(found.as_claims())
        case _:
            print_text(found.nats_conf())
