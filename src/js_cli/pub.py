"""``twinstream pub``: publish messages and wait until the stream has them."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from attrs import define, field
from rich.console import Console

from js_cli.failures import Failure
from js_cli.payloads import Draft, parse_headers, payloads
from js_cli.screen import notes, print_json, progress, results
from js_cli.target import Target, json_option, server_options

if TYPE_CHECKING:
    from js_models import PubAck
    from js_sync import PublishFailure, PublishRequest

WINDOW = 256


@click.command(short_help="Publish messages and wait until a stream has them.")
@click.argument("subject")
@click.argument("data", required=False)
@click.option(
    "--file",
    "-f",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Take the data from a file.",
)
@click.option("--lines", is_flag=True, help="Each line of the data is one message.")
@click.option("--count", "-n", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--header", "-H", "headers", multiple=True, metavar="'NAME: VALUE'")
@click.option("--msg-id", metavar="ID", help="The stream keeps one message of each id.")
@click.option(
    "--stream", "expected_stream", metavar="NAME", help="Fail if another stream takes it."
)
@json_option
@server_options
def pub(
    target: Target,
    subject: str,
    data: str | None,
    file: Path | None,
    lines: bool,
    count: int,
    headers: tuple[str, ...],
    msg_id: str | None,
    expected_stream: str | None,
    as_json: bool,
) -> None:
    """Publish DATA (or a file, or standard input) on SUBJECT into a stream.

    Returns when the server has stored each message, and says where. In SUBJECT, DATA, header
    values and the message id, {n} stands for the number of the message. With --json there is
    one line for each message.

    \b
    twinstream pub orders.new '{"id": {n}}' --count 1000 --msg-id 'order-{n}'
    journalctl -o cat | twinstream pub logs.host1 --lines
    """  # noqa: D301  # click wants the character
    if data not in (None, "-") and file is not None:
        raise click.UsageError("give the data once: as DATA or with --file")
    draft = Draft(subject=subject, headers=parse_headers(headers), message_id=msg_id)
    tally = Tally()
    shown = (count > 1 or lines) and not as_json
    with target.connect() as nc, progress(notes(), shown=shown) as display:
        task = display.add_task("publish", total=None if lines else count)
        jet = nc.jetstream(domain=target.domain, timeout=target.timeout)
        requests = _requests(draft, payloads(data, file, lines, count), expected_stream)
        for outcome in jet.publish_many(requests, window=WINDOW):
            tally.enter(outcome)
            display.advance(task)
            if as_json:
                _print_outcome(outcome)
    if not as_json:
        tally.show(results())
    if tally.failed:
        raise Failure(f"{tally.failed:,} of {tally.sent:,} not stored; the first: {tally.error}")


def _requests(
    draft: Draft, parts: Iterator[bytes], expected_stream: str | None
) -> Iterator[PublishRequest]:
    from js_sync import PublishRequest

    for number, part in enumerate(parts, start=1):
        yield PublishRequest(
            subject=draft.subject_of(number),
            data=part,
            headers=draft.headers_of(number) or None,
            msg_id=draft.message_id_of(number),
            expected_stream=expected_stream,
        )


def _print_outcome(outcome: PubAck | PublishFailure) -> None:
    from js_models import encode
    from js_sync import PublishFailure

    if isinstance(outcome, PublishFailure):
        code = getattr(outcome.error, "err_code", None)
        print_json({"error": str(outcome.error), "err_code": code})
    else:
        print_json(encode(outcome))


@define
class Tally:
    """Counts what became of the messages."""

    stored: int = 0
    duplicates: int = 0
    failed: int = 0
    last: PubAck | None = None
    error: Exception | None = None
    _started: float = field(factory=time.monotonic)

    @property
    def sent(self) -> int:
        """All messages."""
        return self.stored + self.duplicates + self.failed

    def enter(self, outcome: PubAck | PublishFailure) -> None:
        """Count one outcome."""
        from js_sync import PublishFailure

        if isinstance(outcome, PublishFailure):
            self.failed += 1
            self.error = self.error or outcome.error
            return
        self.last = outcome
        if outcome.duplicate:
            self.duplicates += 1
        else:
            self.stored += 1

    def show(self, console: Console) -> None:
        """Print what happened, in one line."""
        if self.last is None:
            if not self.failed:
                print("nothing to publish: standard input was empty", file=sys.stderr)
            return
        where = f"{self.last.stream}"
        if self.sent == 1:
            known = " (known already by its message id)" if self.duplicates else ""
            console.print(f"stored in {where} at sequence {self.last.seq}{known}")
            return
        seconds = time.monotonic() - self._started
        known = f", {self.duplicates:,} known already" if self.duplicates else ""
        console.print(
            f"{self.stored:,} stored in {where}, the last at sequence {self.last.seq}{known}"
            f" ({self.sent / seconds:,.0f} a second)"
        )
