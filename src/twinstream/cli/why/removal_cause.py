"""One possible cause of a removal, and how well it fits."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from twinstream.cli.why.answer import Claim, Confidence, Kind
from twinstream.cli.why.facts import Facts
from twinstream.models import Timestamp

__all__ = ["Cause", "Standing", "has_older_message", "stored_between"]

Standing = Literal["certain", "reported", "likely", "possible", "unlikely", "excluded"]
"""How well a cause fits, from the best. `excluded` says that it cannot be the cause."""


@frozen
class Cause:
    """A possible cause, with the reason why it fits or not."""

    kind: Kind
    standing: Standing
    text: str
    source: str

    @property
    def claim(self) -> Claim:
        """The claim for the table of evidence. That a cause is excluded is certain."""
        confidence: Confidence = "certain" if self.standing == "excluded" else self.standing
        return Claim(self.text, self.source, confidence)


def stored_between(facts: Facts) -> tuple[Timestamp, Timestamp | None]:
    """Return the times between which a removed message was stored.

    The first message that is left was stored before, if its sequence is lower, else the stream was
    created before. The next message was stored after it, if there is one.
    """
    state = facts.stream.state
    has_older = has_older_message(facts) and state.first_ts is not None
    earliest = state.first_ts if has_older and state.first_ts else facts.stream.created
    if facts.next is not None:
        return earliest, facts.next.time
    return earliest, state.last_ts


def has_older_message(facts: Facts) -> bool:
    """Return whether the stream has a message with a lower sequence."""
    state = facts.stream.state
    return state.messages > 0 and state.first_seq < facts.seq
