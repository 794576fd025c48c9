"""Insert, update and upsert: writes by which a subject acts as a key."""

from __future__ import annotations

from typing import Final

from js_async import JetStream
from js_async.extension import SubjectWrites, api_of
from twinstream.core.deadline import Seconds
from twinstream.core.exactly_once.conditional_write import AlreadyThere, Stored
from twinstream.core.wire.subjects import check_name
from twinstream.records.headers import HeaderValues
from twinstream.records.publish_request import PublishRequest

__all__ = ["SubjectWriter"]


class SubjectWriter:
    """Writes that depend on the last message of their subject, each of them stored once.

    After a lost response, a call writes again and reads the last message of the subject. The
    constructor sends no request. The first call for a stream requests the stream's info, and checks
    that its settings make the call possible. A writer requests the info again after a reconnect or
    a refusal, so use one writer for many calls.

    Args:
        jet: The JetStream context.
        stream_name: Name of the stream. Without it, a call looks up the stream of its subject,
            which the user must have the permission for.
        check: Check the settings of the stream.
    """

    def __init__(
        self, jet: JetStream, stream_name: str | None = None, *, check: bool = True
    ) -> None:
        self._writes: Final = SubjectWrites(api_of(jet))
        if stream_name is not None:
            check_name(stream_name, "stream")
        self._stream: Final = stream_name
        self._check: Final = check

    def __repr__(self) -> str:
        return f"<SubjectWriter {self._stream or 'of any stream'}>"

    async def insert(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        lasting: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> Stored | AlreadyThere:
        """Store a message unless the stream already has a message of its subject.

        Return `Stored`, or `AlreadyThere` if the subject has a message. `Stored` means that the
        stream contains this message exactly once. If you choose the `msg_id`, you can repeat the
        call even after a restart of the program.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            headers: Headers of the message.
            msg_id: Message id. The default is a random one.
            ttl: Time to live in seconds.
            lasting: Seconds for which the stream must keep the message. The default is `ttl`, or
                forever without a `ttl`.
            timeout: Seconds; the default is that of the JetStream context.

        Raises:
            UnsuitableSettings: The stream's settings may remove the subject's message too early.
            OutcomeUnknown: The timeout passed after a lost response.
            TwinstreamError: Any error of `JetStream.publish`.
        """
        request = PublishRequest(subject, data, headers, msg_id, self._stream, ttl=ttl)
        return await self._writes.insert(
            request, check=self._check, lasting=lasting, timeout=timeout
        )

    async def update(
        self,
        subject: str,
        data: bytes,
        expected_seq: int,
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> Stored:
        """Replace the last message of a subject if its sequence is still `expected_seq`.

        The other arguments are those of `insert`.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            expected_seq: Sequence that the subject's last message must have.
            headers: Headers of the message.
            msg_id: Message id. The default is a random one.
            ttl: Time to live of the message in whole seconds; None means that of the stream.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            WrongLastSequence: The last message of the subject has another sequence.
            OutcomeUnknown: A response was lost, and the outcome could not be determined.
            UnsuitableSettings: The stream's settings refuse a second message of a subject.
            TwinstreamError: Any error of `JetStream.publish`.
        """
        request = PublishRequest(subject, data, headers, msg_id, self._stream, ttl=ttl)
        return await self._writes.update(request, expected_seq, check=self._check, timeout=timeout)

    async def upsert(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        ttl: Seconds | None = None,
        timeout: Seconds | None = None,
    ) -> Stored:
        """Store a message, and remove the earlier messages of its subject.

        If the call repeats the write after a lost response, the repetition never replaces a message
        that another client stored in between. The arguments are those of `insert`.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            headers: Headers of the message.
            msg_id: Message id. The default is a random one.
            ttl: Time to live of the message in whole seconds; None means that of the stream.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            UnsuitableSettings: The stream's settings keep older messages of a subject, or
                refuse new ones.
            OutcomeUnknown: It could not be determined whether the message is stored.
            TwinstreamError: Any error of `JetStream.publish`.
        """
        request = PublishRequest(subject, data, headers, msg_id, self._stream, ttl=ttl)
        return await self._writes.upsert(request, check=self._check, timeout=timeout)
