"""Errors that the JetStream API returns, beside the generated ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from twinstream.errors import server_errors
from twinstream.errors.base import JetStreamError, NoResponders, TwinstreamError
from twinstream.errors.server_errors import StoreFailed
from twinstream.models.error_codes import ADVICE, CLASSES, STREAM_NAME_EXISTS_RESTORE

if TYPE_CHECKING:
    from twinstream.records.difference import Difference

__all__ = [
    "ConsumerExists",
    "InvalidResponse",
    "JetStreamNotEnabled",
    "MessageExists",
    "MessageIdInProcess",
    "StreamExists",
    "WrongLastSequence",
    "api_error",
]


class InvalidResponse(TwinstreamError):
    """The response is not in a form that JetStream sends. Usually another client sent it.

    Also raised if only the first of several responses arrives, because the account that exports the
    JetStream API does so without `response_type: stream`.

    What to do: Look for another client that answers on the subjects of JetStream's API, and for the
    export of the account.
    """


class JetStreamNotEnabled(JetStreamError, NoResponders):
    """JetStream is off on this server or for this account, or no server answered.

    `err_code` is 10039 or 10076 if a server reported it, and 0 if no server answered. In the second
    case, the cause may also be a wrong domain or API prefix.

    What to do: Start the server with JetStream, enable it for the account, or correct the domain.
    """


class _Exists(JetStreamError):
    # What the caller can do; an object that consists of streams names its own calls.
    _next = ""
    # The server's description, without the differences.
    _reason = ""
    differences: tuple[Difference, ...] = ()

    def __str__(self) -> str:
        # The text of a refused restore has its advice already.
        next_ = "" if self.err_code == STREAM_NAME_EXISTS_RESTORE else self._next
        return f"{super().__str__()}; {next_}" if next_ else super().__str__()

    def with_differences(self, found: tuple[Difference, ...], advice: str = "") -> Self:
        """Return a copy of the error with `differences` and with them in the message.

        `advice` replaces the usual advice, if it is given.
        """
        because = "; ".join(str(each) for each in found) or "no requested field differs"
        reason = self._reason or self.description
        error = type(self)(
            f"{reason}: {because}",
            code=self.code,
            err_code=self.err_code,
            subject=self.subject,
        )
        error.differences = found
        error._next = advice or self._next
        error._reason = reason
        return error


class StreamExists(_Exists):
    """A stream with this name exists (10130), or exists with another configuration (10058).

    `differences` lists the fields that differ. It is empty if the existing configuration was not
    looked up.

    What to do: Take the stream as it is with `get_stream`, or change it with
    `create_or_update_stream`.
    """

    _next = (
        "get_stream returns it as it is, create_or_update_stream changes it (settings that are not"
        " given return to their defaults), and delete_stream deletes it"
    )


class ConsumerExists(_Exists):
    """A consumer with this name exists with another configuration (10013, 10105, 10148).

    `differences` lists the fields that differ. It is empty if the existing configuration was not
    looked up.

    What to do: Take the consumer as it is with `get_consumer`, or change it with
    `create_or_update_consumer`.
    """

    _next = (
        "get_consumer (of a push consumer push_messages) returns it as it is,"
        " create_or_update_consumer changes it (settings that are not given return to their"
        " defaults), and delete_consumer deletes it"
    )


class MessageExists(StoreFailed):
    """The subject already has the maximum number of messages (10077, per subject).

    What to do: Nothing, if the subject is meant for one message. Otherwise raise
    `max_msgs_per_subject`.
    """


class MessageIdInProcess(JetStreamError):
    """The leader of the stream is storing a message with this id (10158).

    Usually the error ends after a moment, or when another server becomes the leader. But a server
    that lost the leadership and regained it (seen with 2.15.1) may return the error for a message
    that it never stored. Then the error ends after the duplicate window of the stream, or when
    another server becomes the leader.

    What to do: Publish the message again with the same id.
    """

    def __str__(self) -> str:
        return (
            f"{super().__str__()}; publish it again with the same id: after a change of leaders"
            " that may only help after the stream's duplicate_window"
        )


class WrongLastSequence(JetStreamError):
    """An expected last sequence did not match (10071, 10164).

    `actual` is the last sequence of the stream, or of the subject if its sequence was expected. It
    is None if the server does not report it, because another write is in flight.

    What to do: Read the last message again, decide, and publish with its sequence.
    """

    actual: int | None

    def __init__(self, description: str, *, code: int, err_code: int, subject: str = "") -> None:
        super().__init__(description, code=code, err_code=err_code, subject=subject)
        # The server's text is "wrong last sequence: 5".
        number = description.rpartition(":")[2].strip()
        is_number = number.isascii() and number.isdigit() and len(number) <= 20
        self.actual = int(number) if is_number else None


def api_error(error: dict[str, object], *, subject: str = "") -> JetStreamError:
    """Return the exception for the `error` member of a JetStream response.

    Args:
        error: The member `error` of the response.
        subject: Subject of the request.
    """
    description = str(error.get("description") or "JetStream gave no reason")
    code = _integer(error.get("code"))
    err_code = _integer(error.get("err_code"))
    name = CLASSES.get(err_code, "JetStreamError")
    cls: type[JetStreamError] = vars(server_errors).get(name) or globals()[name]
    if cls is StoreFailed and "per subject" in description:
        cls = MessageExists
    raised = cls(description, code=code, err_code=err_code, subject=subject)
    if err_code in ADVICE:
        raised.add_advice(ADVICE[err_code])
    return raised


def _integer(value: object) -> int:
    return value if isinstance(value, int) else 0
