"""`twinstream why`: explain what happened to one message for one consumer."""

from __future__ import annotations

import click
from rich.text import Text

from twinstream.cli.escapes import harmless
from twinstream.cli.option_types import SEQUENCE
from twinstream.cli.screen import plain_table, print_json, print_text, results, to_terminal
from twinstream.cli.table import Page
from twinstream.cli.target import Target, json_option, server_options
from twinstream.cli.why.answer import Answer, Claim, Verdict
from twinstream.cli.why.decision import decide
from twinstream.cli.why.gathering import Question, gather


@click.command(short_help="Explain what happened to a message.")
@click.argument("stream")
@click.argument("consumer")
@click.argument("seq", type=SEQUENCE)
@click.option(
    "--advisories",
    metavar="STREAM",
    help="Stream that stores advisories, such as $JS.EVENT.ADVISORY.>",
)
@click.option("--subject", metavar="SUBJECT", help="Subject of a removed message, if you know it.")
@json_option
@server_options
def why(
    target: Target,
    stream: str,
    consumer: str,
    seq: int,
    advisories: str | None,
    subject: str | None,
    as_json: bool,
) -> None:
    """Explain why CONSUMER got the message SEQ of STREAM again, did not get it, or why it is gone.

    The first line is the verdict. Each claim below it names its source and how far it can be
    trusted: "certain" is from a reply of the server, "reported" from a stored advisory, "likely",
    "possible" and "unlikely" are conclusions. What the server does not keep is "unknown". The
    command only reads. The exit code is 0 if there is an answer, also for a message that does not
    exist.

    \b
    twinstream why ORDERS packer 17
    twinstream why ORDERS packer 17 --advisories EVENTS
    twinstream why ORDERS packer 12 --subject orders.eu.7 --json
    """  # noqa: D301  # click needs the backspace character
    question = Question(
        stream_name=stream,
        consumer_name=consumer,
        seq=seq,
        subject=subject,
        advisories=advisories,
    )
    with target.connect() as nc:
        version = nc.server_info.version_numbers
        facts = gather(target.jetstream(nc), question, target.timeout, version)
    answer = decide(facts)
    if as_json:
        print_json(_as_json(question, answer))
    else:
        _show(question, answer)


def _show(question: Question, answer: Answer) -> None:
    """Print the verdicts of an answer, and the evidence for them."""
    name = f"{question.stream_name}/{question.consumer_name} {question.seq}"
    print_text(f"{name}: {_sentence(answer.verdict)}")
    for verdict in answer.also:
        print_text(f"also: {_sentence(verdict)}")
    if not to_terminal():
        table = plain_table("trust", "claim", "source")
        for claim in answer.evidence:
            table.add_row(claim.confidence, claim.text, claim.source)
        results().print(table)
        return
    page = Page("evidence")
    for claim in answer.evidence:
        page.add_row(claim.confidence, Text(f"{harmless(claim.text)} [{harmless(claim.source)}]"))
    results().print("", page)


def _sentence(verdict: Verdict) -> str:
    return f"{verdict.text} ({verdict.confidence})"


def _as_json(question: Question, answer: Answer) -> dict[str, object]:
    return {
        "stream_name": question.stream_name,
        "consumer_name": question.consumer_name,
        "seq": question.seq,
        "verdict": _verdict_as_json(answer.verdict),
        "also": [_verdict_as_json(each) for each in answer.also],
        "evidence": [_claim_as_json(each) for each in answer.evidence],
    }


def _verdict_as_json(verdict: Verdict) -> dict[str, object]:
    return {"kind": verdict.kind, "text": verdict.text, "confidence": verdict.confidence}


def _claim_as_json(claim: Claim) -> dict[str, object]:
    return {"claim": claim.text, "source": claim.source, "confidence": claim.confidence}
