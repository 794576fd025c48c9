"""What the tests of `twinstream why` stage on a server, and how they read the answer."""

from __future__ import annotations

import itertools
import json
from typing import Any

from attrs import frozen

import js_sync
from tests._sync.flow import eventually
from tests.cli.output import Run
from tests.soak import LONGEST
from twinstream.models import ConsumerConfig, StreamConfig

__all__ = ["EVENTS", "Stage", "kinds", "sources"]

_numbers = itertools.count(1)

EVENTS = "EVENTS"
"""The stream that stores all advisories and metrics, also those of the API."""


@frozen
class Stage:
    """One stream, whose subjects begin with its name and a dot, and its consumer `c`."""

    run: Run
    jet: js_sync.JetStream
    stream: js_sync.Stream

    @classmethod
    def of(cls, run: Run, jet: js_sync.JetStream, **settings: Any) -> Stage:
        """Create a stream with settings, and before it the stream of advisories."""
        jet.create_or_update_stream(StreamConfig(name=EVENTS, subjects=["$JS.EVENT.>"]))
        name = f"WHY{next(_numbers)}"
        config = StreamConfig(name=name, subjects=[f"{name}.>"], **settings)
        return cls(run, jet, jet.create_stream(config))

    def publish(self, *tokens: str, **options: Any) -> None:
        """Publish a message for each last token of a subject."""
        for token in tokens:
            self.jet.publish(self.subject(token), b"x" * 100, **options)

    def subject(self, token: str) -> str:
        """Return a subject of the stream."""
        return f"{self.stream.name}.{token}"

    def consumer(self, **settings: Any) -> js_sync.Consumer:
        """Create the consumer."""
        return self.stream.create_consumer(ConsumerConfig(durable_name="c", **settings))

    def ask(self, seq: int, *options: str) -> dict[str, Any]:
        """Return the answer of the command. Each of its claims has a source."""
        result = self.run("why", self.stream.name, "c", str(seq), "--json", *options)
        assert result.exit_code == 0, result.output
        answer: dict[str, Any] = json.loads(result.stdout)
        assert all(claim["source"] for claim in answer["evidence"])
        return answer

    def ask_with_events(self, seq: int, *options: str) -> dict[str, Any]:
        """Return the answer with stored advisories."""
        return self.ask(seq, "--advisories", EVENTS, *options)

    def wait_for(self, kind: str) -> None:
        """Wait until an advisory about the consumer is stored, such as `MSG_NAKED`."""
        subject = f"$JS.EVENT.*.CONSUMER.{kind}.{self.stream.name}.c"
        self._wait_for(subject)

    def wait_for_call(self, name: str) -> None:
        """Wait until the stream of advisories has a call of the API, such as `STREAM.PURGE`."""
        word = f'"subject":"$JS.API.{name}.{self.stream.name}"'.encode()
        events = self.jet.bind_stream(EVENTS)

        def is_stored() -> bool:
            with events.read(subjects="$JS.EVENT.ADVISORY.API") as reading:
                return any(word in message.data for message in reading)

        eventually(is_stored, patience=LONGEST)

    def _wait_for(self, subject: str) -> None:
        def is_stored() -> bool:
            try:
                self.jet.bind_stream(EVENTS).get_next_message(subject)
            except js_sync.MessageNotFound:
                return False
            return True

        eventually(is_stored, patience=LONGEST)

    def wait_until_removed(self, seq: int) -> None:
        """Wait until the stream does not have a message."""

        def is_removed() -> bool:
            try:
                self.stream.get_message(seq)
            except js_sync.MessageNotFound:
                return True
            return False

        eventually(is_removed, patience=LONGEST)


def kinds(answer: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of the verdict and its confidence."""
    verdict = answer["verdict"]
    return verdict["kind"], verdict["confidence"]


def sources(answer: dict[str, Any]) -> str:
    """Return the sources of all claims, each on a line."""
    return "\n".join(claim["source"] for claim in answer["evidence"])
