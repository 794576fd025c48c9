"""`twinstream stream step-down` and `peer-remove`: change the servers of a stream."""

from __future__ import annotations

import click

from twinstream.cli.confirm import sure, unasked_option, yes_option
from twinstream.cli.screen import print_json, print_text
from twinstream.cli.target import Target, json_option, server_options


@click.command("step-down", short_help="Move the leadership of a stream to another server.")
@click.argument("stream")
@click.option("--prefer", metavar="SERVER", help="The new leader, if possible (server 2.11).")
@unasked_option
@json_option
@server_options
def step_down(target: Target, stream: str, prefer: str | None, as_json: bool) -> None:
    """Ask the leader of STREAM to step down, so that another server becomes the leader.

    The command does not wait for the new leader.
    """
    with target.connect() as nc:
        target.jetstream(nc).bind_stream(stream).replicas.step_down(preferred=prefer)
    if as_json:
        print_json({"stream_name": stream, "stepped_down": True})
    else:
        print_text(f"the leader of {stream} steps down")


@click.command("peer-remove", short_help="Remove a replica of a stream from a server.")
@click.argument("stream")
@click.argument("peer", metavar="SERVER")
@yes_option
@json_option
@server_options
def peer_remove(target: Target, stream: str, peer: str, yes: bool, as_json: bool) -> None:
    """Remove the replica of STREAM on SERVER, which is a name or a peer id.

    Another server gets a replica. Until it has caught up, the stream has one replica fewer.
    """
    with target.connect() as nc:
        handle = target.jetstream(nc).bind_stream(stream)
        sure(f"Remove the replica of {stream} on {peer}?", yes=yes)
        handle.replicas.remove(peer)
    if as_json:
        print_json({"stream_name": stream, "removed": peer})
    else:
        print_text(
            f"{peer} has no replica of {stream} now; `twinstream stream info {stream}` shows which"
            " servers have one"
        )
