"""The JetStream API of an account. `Api` sends requests and decodes their responses."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import count
from typing import TYPE_CHECKING, Any, Final, TypeVar

import twinstream.models
from js_async.client.transport import Transport
from js_async.runtime.concurrency import Handler, sleep
from twinstream.core.arguments.check_arguments import check_whole
from twinstream.core.deadline import Deadline, Seconds, monotonic, seconds
from twinstream.core.log.logger import Log
from twinstream.core.on_failure import AsyncOnError
from twinstream.core.server_faults.delays import SPREADING, spreading_pauses
from twinstream.core.server_faults.repeats import is_repeatable, pause_before_repeat
from twinstream.core.wire.fast import AckReader
from twinstream.core.wire.headers import encode_headers
from twinstream.core.wire.protocol import Frame
from twinstream.core.wire.response import check_success, read_api_answer, write_json
from twinstream.core.wire.subjects import ApiSubjects, check_subject
from twinstream.errors import (
    ConnectionLost,
    InvalidResponse,
    JetStreamError,
    JetStreamNotEnabled,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
    Unsupported,
)
from twinstream.models import DecodeError, Model, decode, encode
from twinstream.models.error_codes import REQUIRED_API_LEVEL

if TYPE_CHECKING:
    from js_async.client.requests import Answer
    from twinstream.core.observe.operation import Operation, OperationKind
    from twinstream.models import StreamConfig, StreamInfoResponse

__all__ = ["Api"]

M = TypeVar("M", bound=Model)
_API_LEVEL: Final = "Nats-Required-Api-Level"
_API_LEVEL_SINCE: Final = (2, 12, 0)
_UNREPORTED: Final = nullcontext()
_LOG: Final = Log("api")


class Api:
    """The JetStream API of one account or domain, over one connection."""

    def __init__(
        self,
        transport: Transport,
        subjects: ApiSubjects,
        timeout: Seconds | None,
        required_level: int | None = None,
    ) -> None:
        self.transport: Final = transport
        self.subjects: Final = subjects
        self.acks: Final = AckReader()
        self._retries: Final = Log("publisher")
        if required_level is not None:
            check_whole(required_level, "required_api_level")
        self._required_level: Final = required_level
        # The encoded headers of each request; empty unless an API level is required.
        self._headers: Final = (
            b"" if required_level is None else encode_headers({_API_LEVEL: str(required_level)})
        )
        # The default timeout of a call in seconds.
        self.timeout: Final = (
            transport.request_timeout if timeout is None else seconds(timeout, "timeout")
        )

    def require(self, version: tuple[int, int, int], what: str) -> None:
        """Raise `Unsupported` if the connected server is older than `version`.

        `what` names the feature in the error.
        """
        info = self.transport.server_info
        if info.version_numbers < version:
            needed = ".".join(map(str, version))
            raise Unsupported(f"{what} needs server {needed}, connected to {info.version}")

    async def config_of(
        self, stream: str, since: tuple[int, int, int], what: str, deadline: Deadline
    ) -> StreamConfig:
        """Return the configuration of a stream, for a feature that servers have from `since` on.

        Raises `Unsupported`, which names the feature as `what`, and `StreamNotFound`.
        """
        await self.transport.ready(deadline)
        self.require(since, what)
        return (await self.stream_info(stream, deadline)).config

    def log_retry(self, subject: str, error: TwinstreamError) -> None:
        """Log that a message will be published again because of `error`."""
        from twinstream.core.log.events import WillRetry

        # Most errors name the subject.
        what = "publishing" if subject in str(error) else f"publishing to {subject}"
        event = WillRetry(what, error, subject)
        self._retries(event, kind=type(error).__name__)

    def deadline(self, timeout: Seconds | None = None) -> Deadline:
        """Return a deadline `timeout` seconds from now; None means the default timeout."""
        if timeout is None:
            return Deadline(monotonic() + self.timeout)
        return Deadline.after(timeout)

    @property
    def is_instrumented(self) -> bool:
        """Whether calls are observed or logged (at level DEBUG)."""
        return self.transport.call_observers is not None or _LOG.debugs()

    def instrumented(
        self,
        name: str,
        subject: str,
        size: int,
        stream: str | None = None,
        *,
        kind: OperationKind = "request",
        count: int | None = None,
    ) -> AbstractContextManager[Operation | None]:
        """Return a context manager for one request, which observers and the log see.

        Without both, the context manager does nothing and yields None. `name` is the kind of the
        call, `size` the size of the request in bytes, `count` the number of its messages. The
        default of `stream` is the name in the API subject `subject`. The code in the block updates
        `attempts` and `stream`.
        """
        observers = self.transport.call_observers
        if observers is None:
            if not _LOG.debugs():
                return _UNREPORTED
            from twinstream.core.api.call_observers import LOG_ONLY

            observers = LOG_ONLY
        if stream is None:
            stream = self.subjects.stream_of(subject)
        return observers.begin(kind, name, subject, stream=stream, size=size, count=count)

    async def call(
        self,
        subject: str,
        body: Model | Mapping[str, Any] | None,
        as_: type[M],
        deadline: Deadline | None = None,
        *,
        repeatable: bool | None = None,
    ) -> M:
        """Send a request and return its response decoded as `as_`.

        A `repeatable` request is sent again while no response arrives, after a transient error of
        the server (for example while the cluster has no leader), and after a lost connection. By
        default, `is_repeatable` decides by the subject. Unless `repeatable` is False, the request
        is also sent again for 0.3 seconds while there are no responders.

        Raises:
            JetStreamError: The server refused the request.
            JetStreamNotEnabled: There are no responders, or the server reports it.
            InvalidResponse: The response is invalid.
            Unsupported: The server cannot check the required API level.
            TwinstreamError: The request failed for another reason, for example `RequestTimeout`.
        """
        payload = _payload(body)
        with self.instrumented("api", subject, len(payload)) as call:
            members = await self._call_until_answered(subject, payload, deadline, repeatable, call)
            try:
                found = decode(members, as_)
            except DecodeError as error:
                raise InvalidResponse(f"{subject}: {error}") from error
            check_success(found, subject)
            return found

    async def stream_info(
        self,
        stream: str,
        deadline: Deadline | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> StreamInfoResponse:
        """Return the configuration and state of a stream. Raises `StreamNotFound`.

        `body` is the body of the request. For example, it selects subjects by a filter.
        """
        subject = self.subjects.stream("INFO", stream)
        return await self.call(subject, body, twinstream.models.StreamInfoResponse, deadline)

    async def call_raw(
        self,
        subject: str,
        body: Model | Mapping[str, Any] | None,
        deadline: Deadline | None = None,
        *,
        repeatable: bool | None = None,
    ) -> dict[str, Any]:
        """Send a request and return its response as a dictionary. Otherwise like `call`."""
        payload = _payload(body)
        with self.instrumented("api", subject, len(payload)) as call:
            return await self._call_until_answered(subject, payload, deadline, repeatable, call)

    async def call_through(
        self,
        subject: str,
        body: Mapping[str, Any],
        undo: Handler[tuple[dict[str, Any], BaseException]],
    ) -> dict[str, Any]:
        """Send a request once, and return its response as a dictionary.

        A cancelled or interrupted call still waits for the response, at most for the default
        timeout. If the server has accepted the request, `undo` is called with the response and the
        interrupting exception. If the outcome is unknown, a note in that exception reports it.
        """
        payload = _payload(body)
        replies, deadline = self.transport.replies, self.deadline()
        with self.instrumented("api", subject, len(payload)):
            self._check_level()
            answer = await replies.send(check_subject(subject), self._headers, payload, deadline)

            async def cut_short(cut: BaseException) -> None:
                await replies.wait(answer, self.deadline())
                try:
                    members = self._read(answer, subject)
                except JetStreamError:
                    # The request had no effect, so there is nothing to undo.
                    return
                except TwinstreamError as error:
                    cut.add_note(f"{subject}: it is unknown whether this was done: {error}")
                    return
                await undo((members, cut))

            try:
                async with AsyncOnError(cut_short):
                    await replies.wait(answer, deadline)
            finally:
                replies.forget(answer)
            return self._read(answer, subject)

    def _read(self, answer: Answer, subject: str) -> dict[str, Any]:
        try:
            frame = answer.take(subject)
        except NoResponders as error:
            raise self._not_enabled(subject) from error
        return read_api_answer(frame[3][frame[2] : -2], subject)

    async def _call_until_answered(
        self,
        subject: str,
        payload: bytes,
        deadline: Deadline | None,
        repeatable: bool | None,
        call: Operation | None,
    ) -> dict[str, Any]:
        """Send a request to the JetStream API and return the members of its JSON response.

        A repeatable request is sent again after a lost connection, and after an error of the server
        that may pass, until the deadline. `repeatable=None` lets the subject decide.
        """
        deadline = deadline or self.deadline()
        if repeatable is None:
            may_repeat = is_repeatable(subject, self.subjects.prefix)
        else:
            may_repeat = repeatable
        # A request without responders had no effect. Only an explicit False forbids the repeat.
        spreading = 0.0 if repeatable is False else SPREADING
        last_error: TwinstreamError | None = None
        for attempts in count(1):
            if call is not None and attempts > 1:
                call.attempts += 1
            try:
                frame = await self._request(subject, payload, deadline, may_repeat, spreading, call)
            except RequestTimeout as error:
                if last_error is not None:
                    # The last attempt may have had too little time. Keep what is known.
                    raise error from last_error
                raise
            except ConnectionLost as error:
                if not may_repeat:
                    raise
                # Send the request again. `_request` waits for the reconnect first.
                last_error = error
                continue
            try:
                return read_api_answer(frame[3][frame[2] : -2], subject)
            except JetStreamError as error:
                if error.err_code == REQUIRED_API_LEVEL:
                    error.add_advice(
                        f"required_api_level={self._required_level}: server"
                        f" {self.transport.server_info.version} has a lower one"
                    )
                remaining = deadline.remaining() if may_repeat else 0.0
                pause = pause_before_repeat(error, attempts, remaining)
                if pause is None:
                    raise
                last_error = error
                await sleep(pause)
                if deadline.expired():
                    # The program was held up. Another attempt would hide the reason.
                    raise
        raise AssertionError("counting has no end")

    async def _request(
        self,
        subject: str,
        payload: bytes,
        deadline: Deadline,
        may_repeat: bool,
        spreading: float,
        call: Operation | None,
    ) -> Frame:
        """Send a request once and return the frame of its response.

        Raises `JetStreamNotEnabled` if there are no responders for `spreading` seconds.
        """
        if self._headers:
            await self.transport.ready(deadline)
            self._check_level()
        try:
            return await self.ask(
                subject,
                self._headers,
                payload,
                deadline,
                repeatable=may_repeat,
                spreading=spreading,
                call=call,
            )
        except NoResponders as error:
            raise self._not_enabled(subject) from error

    async def ask(
        self,
        subject: str,
        headers: bytes,
        data: bytes,
        deadline: Deadline,
        *,
        repeatable: bool = False,
        spreading: float = SPREADING,
        call: Operation | None = None,
    ) -> Frame:
        """Send a request as `Transport.ask` does; repeat it while there are no responders.

        The last request is sent `spreading` seconds after the first, or later if the program is
        held up. The call then raises `NoResponders`. `call` counts the repeats.
        """
        pauses = spreading_pauses(spreading)
        while True:
            try:
                return await self.transport.ask(
                    subject, headers, data, deadline, repeatable=repeatable, call=call
                )
            except NoResponders:
                pause = next(pauses, None)
                if pause is None or deadline.remaining() <= pause:
                    raise
            await sleep(pause)
            if call is not None:
                call.attempts += 1

    def _check_level(self) -> None:
        """Raise `Unsupported` if an API level is required and the server is older than 2.12.

        Such a server would ignore the required level.
        """
        if self._required_level is not None:
            self.require(_API_LEVEL_SINCE, f"required_api_level={self._required_level}")

    def _not_enabled(self, subject: str) -> JetStreamNotEnabled:
        return JetStreamNotEnabled(
            "JetStream does not answer; it is off for this server (`nats-server -js` turns it on)"
            f" or account, or no server here serves the prefix {self.subjects.prefix} (its domain)",
            code=503,
            err_code=0,
            subject=subject,
        )


def _payload(body: Model | Mapping[str, Any] | None) -> bytes:
    if body is None:
        return b""
    members = encode(body) if isinstance(body, Model) else body
    return write_json(members)
