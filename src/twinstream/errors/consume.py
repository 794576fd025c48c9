"""Errors of pulls and of acknowledgements."""

from __future__ import annotations

from twinstream.errors.base import TwinstreamError

__all__ = [
    "AcknowledgementError",
    "AlreadyAcknowledged",
    "ConsumerDeleted",
    "ConsumerIsPush",
    "InvalidPullRequest",
    "NotAcknowledgeable",
    "PullError",
    "PullRefused",
]


class PullError(TwinstreamError):
    """A pull ended with an error that a retry does not fix.

    What to do: See the class of the error, and its text.
    """


class PullRefused(PullError):
    """The pull request exceeds a limit of the consumer.

    `limit` is the name of the limit in the configuration of the consumer. `asked` is the requested
    value and `allowed` the value of the limit: in messages (`max_batch`), bytes (`max_bytes`),
    seconds (`max_expires`) or open requests (`max_waiting`). A value that is not known is None.
    `text` is the status that the server sent.

    What to do: Ask for less, or raise the limit of the consumer that `limit` names.
    """

    def __init__(self, limit: str, asked: float | None, allowed: float | None, text: str) -> None:
        self.limit = limit
        self.asked = asked
        self.allowed = allowed
        self.text = text
        unit = " s" if limit == "max_expires" else ""
        wanted = "one more request" if asked is None else f"{asked:.15g}{unit}"
        most = "less" if allowed is None else f"{allowed:.15g}{unit}"
        super().__init__(
            f"the pull asked for {wanted}, the consumer's {limit} allows {most} (server: {text})"
        )


class ConsumerDeleted(PullError):
    """The consumer or its stream was deleted.

    What to do: Create the consumer again. A consumer that is not durable is deleted when it is
    idle: give it a `durable_name`, or a longer `inactive_threshold`.
    """


class ConsumerIsPush(PullError):
    """The consumer is a push consumer, so the server refuses pull requests.

    What to do: Receive with `Stream.push_messages`, or create a pull consumer.
    """


class InvalidPullRequest(PullError):
    """The server refused the pull request as invalid (status 400 or 412).

    What to do: Correct the argument that the text names.
    """


class AcknowledgementError(TwinstreamError):
    """A message cannot be acknowledged as requested.

    What to do: See the class of the error.
    """


class AlreadyAcknowledged(AcknowledgementError):
    """The delivery of the message was acknowledged before.

    The client does not send a second acknowledgement, which would have no effect or a harmful one.

    What to do: Acknowledge each message once. After `in_progress`, another acknowledgement is
    possible.
    """


class NotAcknowledgeable(AcknowledgementError):
    """The message cannot be acknowledged: no JetStream consumer with acknowledgements sent it.

    What to do: Acknowledge only messages of a consumer whose ack policy is not `none`.
    """
