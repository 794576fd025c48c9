"""The publish engine: decide about the retries of one message until its outcome is known.

Theory of operation. The owner sends the message and reports what happens: `failed` with the error
of an attempt, `silent` when an attempt times out, `unsent` when it could not be sent, and
`explained` with the result of an `Explain`. The engine returns one action:

* `Send`: send the message again, after a pause. Either it is certain that the failed attempt stored
  nothing, or a message id or an expectation prevents the message from being stored twice.
* `Listen`: wait for the response of another replica, then carry out the action in it.
* `Prove`: find out whether an earlier attempt without a response was stored. If it was, the server
  may have refused the current attempt for this reason.
* `Explain`: find out why there were no responders, or why no response arrived, then call
  `explained`.
* `Fail`: publishing failed with this error.

An acknowledgement may arrive at any time, even between two actions, and ends the retries. The owner
passes the seconds until its deadline; the engine reads no clock.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from attrs import frozen

from twinstream.core.publish.retry_pauses import RetryPolicy, may_get_leader, needs_pause
from twinstream.core.server_faults.final_reply import SECOND_RESPONSE, is_behind, is_doubtful
from twinstream.errors import (
    BadArgument,
    InvalidResponse,
    JetStreamError,
    NoLeader,
    NoResponders,
    OutcomeUnknown,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.errors.transient import LOST_RESPONSE, is_transient

__all__ = ["Action", "Explain", "Fail", "Listen", "Prove", "PublishEngine", "Send"]


@frozen
class Send:
    """The action to send the message again after `pause` seconds and to increment `attempts`."""

    pause: float


@frozen
class Prove:
    """The action to find out whether an earlier attempt without a response was stored.

    `refusal` is the error of the current attempt.
    """

    refusal: TwinstreamError


@frozen
class Explain:
    """The action to find out why no stream acknowledged the message.

    `silent` is true if no response arrived, and false if there were no responders (503).
    """

    silent: bool


@frozen
class Fail:
    """The action to raise `error`: publishing has failed."""

    error: TwinstreamError


@frozen
class Listen:
    """The action to wait `pause` seconds for another response, and then to carry out `then`.

    The refusal of the message may not be final: another replica may acknowledge it.
    """

    pause: float
    then: Prove | Fail


Action: TypeAlias = Send | Listen | Prove | Explain | Fail


class PublishEngine:
    """The state of one message, from which the engine decides about retries.

    The owner may create the engine at the first failure.

    `repeatable` is true if the message cannot be stored twice when it is sent again. `expected` is
    the last sequence that the message expects, if several replicas may respond.
    """

    __slots__ = (
        "_behind_at",
        "_expected",
        "_lacks_leader",
        "_policy",
        "_repeatable",
        "_subject",
        "attempts",
        "error",
        "may_be_stored",
        "stray",
    )

    def __init__(
        self, subject: str, policy: RetryPolicy, repeatable: bool, expected: int | None = None
    ) -> None:
        self._subject: Final = subject
        self._policy: Final = policy
        self._repeatable: Final = repeatable
        self._expected: Final = expected
        # The number of the attempt that a replica refused because it lacks messages, or 0. Another
        # replica may have stored the message of that attempt.
        self._behind_at = 0
        # The reason that `Explain` last reported, if it is a missing leader, which is temporary.
        self._lacks_leader: NoLeader | None = None
        self.attempts = 1
        """The number of attempts, including the current one."""
        self.may_be_stored = False
        """Whether an earlier attempt may have been stored."""
        self.error: TwinstreamError | None = None
        """The error of the last failed attempt."""
        self.stray: TwinstreamError | None = None
        """The error for a response that was not sent by the stream, None if there was none."""

    @property
    def may_repeat(self) -> bool:
        """Whether the message may be sent again if the current attempt gets no response."""
        return self._repeatable and self.attempts <= self._policy.retries

    # ---- reports of the owner

    def failed(self, error: TwinstreamError, remaining: float) -> Action:
        """Record the error of an attempt; return an action.

        `remaining` is the time until the deadline in seconds.
        """
        self.error = error
        expected = self._expected
        lags = expected is not None and is_behind(error, expected)
        if not lags:
            self.may_be_stored = self.may_be_stored or 0 < self._behind_at < self.attempts
        if expected is not None and is_doubtful(error, expected):
            return self._doubtful(error, lags, remaining)
        if self._may_send(error, remaining):
            self.may_be_stored = self.may_be_stored or isinstance(error, LOST_RESPONSE)
            return Send(self._policy.wait if needs_pause(error) else 0.0)
        match error:
            case NoResponders() if self._lacks_leader is not None:
                return self._unserved(self._lacks_leader)
            case NoResponders() | RequestTimeout():
                return Explain(silent=isinstance(error, RequestTimeout))
            case JetStreamError() | BadArgument() | PermissionDenied() if self.may_be_stored:
                # The reason may be that an earlier attempt was stored. Without that attempt, the
                # server may also refuse this one, for example because the message is too large for
                # the server of a new connection or because permissions have changed.
                return Prove(error)
            case _:
                return Fail(error)

    def silent(self, remaining: float) -> Action:
        """Record a timeout of an attempt; return an action.

        `remaining` is the time until the deadline in seconds.
        """
        error = RequestTimeout(f"{self._subject}: no acknowledgement in time")
        return self.failed(error, remaining)

    def unsent(self, error: TwinstreamError, remaining: float) -> Action:
        """Record that the current attempt could not be sent; return an action.

        `error` is the reason. If it is a timeout, publishing fails with it. `remaining` is the time
        until the deadline in seconds.
        """
        return Fail(error) if isinstance(error, RequestTimeout) else self.failed(error, remaining)

    def explained(self, why: NoResponders, remaining: float) -> Send | Fail:
        """Record the result of `Explain`; return an action.

        `remaining` is the time until the deadline in seconds.
        """
        if isinstance(self.error, RequestTimeout):
            return Fail(self._silence(why))
        if may_get_leader(why) and self._policy.may_wait_for_leader(remaining):
            self._lacks_leader = why if isinstance(why, NoLeader) else None
            self.error = why
            return Send(self._policy.wait)
        return self._unserved(why)

    # ---- decisions

    def _may_send(self, error: TwinstreamError, remaining: float) -> bool:
        if not is_transient(error, repeatable=self._repeatable):
            return False
        lacks_leader = self._lacks_leader is not None
        return self._policy.left(self.attempts, remaining, error, lacks_leader=lacks_leader) > 0

    def _doubtful(self, error: TwinstreamError, lags: bool, remaining: float) -> Action:
        """Decide after a refusal that may not be final.

        If the replica lacks messages (`lags`), the message is sent once more. The pause is longer
        than such a replica takes to learn of the new leader, and the new leader's acknowledgement
        may arrive during the pause. Leaders also refuse messages because of writes in flight, so
        these messages are not sent again: the outcome of the first attempt would become unknown.
        """
        may_send = self.may_repeat and remaining > self._policy.wait
        if lags and may_send and not self._behind_at:
            self._behind_at = self.attempts
            return Send(self._policy.wait)
        pause = max(min(self._policy.wait, SECOND_RESPONSE, remaining), 0.0)
        return Listen(pause, Prove(error) if self.may_be_stored else Fail(error))

    def _unserved(self, why: NoResponders) -> Fail:
        if not self.may_be_stored:
            return Fail(why)
        text = f"{self._subject}: an earlier attempt had no answer and may be stored; then: {why}"
        return Fail(_because(OutcomeUnknown(text), why))

    def _silence(self, why: NoResponders) -> TwinstreamError:
        if self.stray is not None:
            return _because(InvalidResponse(f"{self.stray}; {why}"), why)
        tried = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        text = f"{self._subject}: no acknowledgement in time after {tried}, it may be stored; {why}"
        return _because(RequestTimeout(text), why)


def _because(error: TwinstreamError, cause: TwinstreamError) -> TwinstreamError:
    error.__cause__ = cause
    return error
