"""The retries of a publish: when the message may be sent again, how often, and after which pause.

A message may be sent again if it is certain that nothing was stored. This is the case if there were
no responders (503), or if the server replied that it cannot process the message yet. After a
timeout or a lost connection the outcome is unknown, and only a message id or an expectation
prevents a retry from storing the message twice.

Other clients retry twice after a 503, 250 milliseconds apart, which is about the duration of an
election after a leader stepped down. This is the default of Twinstream, too. If the stream still
has no leader after that, or the server is still processing the message id, the default policy
retries until the timeout. A lost leader is replaced after some seconds, and the ids that it was
processing are then released.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from attrs import evolve, field, frozen

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import (
    BadArgument,
    JetStreamError,
    MessageIdInProcess,
    NoLeader,
    NoResponders,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models.codec.settings import Settings

__all__ = [
    "RetryPolicy",
    "may_get_leader",
    "needs_pause",
    "retry_policy",
]

_RETRIES: Final = 2
# Seconds. Retries with shorter pauses would flood a stream that has no leader for a long time.
_MIN_WAIT: Final = 0.01

# Seconds within which a server replies that a stream has no leader.
_REPLY_TIME: Final = 0.5

# Seconds before the timeout that are reserved to find out why there is no acknowledgement.
_DIAGNOSIS_TIME: Final = 1.0


def _retries(value: int) -> int:
    if type(value) is not int or value < 0:
        raise BadArgument(f"retries must be an int >= 0, got {value!r}")
    return value


def _wait(value: Seconds) -> float:
    return finite_seconds(value, "retry_wait")


@frozen
class RetryPolicy(Settings):
    """The number of retries of a publish, and the seconds to wait after a refused attempt."""

    retries: int = field(default=_RETRIES, converter=_retries)
    wait: float = field(default=0.25, converter=_wait)
    waits_for_leader: bool = False
    """Whether to retry until the timeout if the stream has no leader or the message id is still
    being processed.
    """

    def left(
        self, attempts: int, seconds: float, error: TwinstreamError, *, lacks_leader: bool
    ) -> int:
        """Return how many more attempts may follow after `attempts` attempts.

        The last attempt failed with `error`. `seconds` is the remaining time. `lacks_leader` is
        true if the stream is known to have no leader.
        """
        if lacks_leader and isinstance(error, NoResponders):
            return int(self.may_wait_for_leader(seconds))
        if isinstance(error, MessageIdInProcess) and self.may_wait_for_leader(seconds):
            return 1
        if seconds <= (self.wait if needs_pause(error) else 0.0):
            return 0
        return max(self.retries + 1 - attempts, 0)

    def may_wait_for_leader(self, remaining: float) -> bool:
        """Return whether `remaining` seconds are enough to pause, send again and get a reply.

        All earlier attempts were refused, so the outcome is known. If another attempt got no reply
        before the deadline, the outcome would be unknown.
        """
        return self.waits_for_leader and remaining > self.wait + _REPLY_TIME

    def patience(self, remaining: float, repeatable: bool, attempts: int) -> float:
        """Return how many of the `remaining` seconds to wait for the reply to the next attempt.

        `attempts` is the number of attempts before it. If a retry is possible, each remaining
        attempt gets an equal share. Otherwise some time is reserved to find out why there is no
        reply.
        """
        if repeatable and attempts < self.retries:
            return remaining / (self.retries + 1 - attempts)
        return max(remaining * 0.8, remaining - _DIAGNOSIS_TIME)

    def last_due(self, sent_at: float, end: float) -> float:
        """Return when the last attempt counts as failed, if it was sent at `sent_at`.

        That is early enough to find out before the deadline `end` why there is no reply.
        """
        return sent_at + max(0.0, self.patience(end - sent_at, False, 0))


# Cached, because nearly every publish has the same policy. Validating a policy takes a tenth of the
# work of a publish.
@lru_cache(maxsize=64, typed=True)
def retry_policy(retries: int | None = None, wait: Seconds = 0.25) -> RetryPolicy:
    """Return a `RetryPolicy`.

    If `retries` is None, the policy has two retries. If in addition `wait` is at least 0.01
    seconds, it retries until the timeout while the stream has no leader or is still processing the
    message id.
    """
    if retries is not None:
        return RetryPolicy(retries, wait)
    policy = RetryPolicy(wait=wait)
    return evolve(policy, waits_for_leader=policy.wait >= _MIN_WAIT)


def may_get_leader(why: NoResponders) -> bool:
    """Return whether a later attempt may succeed.

    It may succeed if the stream has no leader at the moment. It may also succeed if the requests
    that look for the reason got no reply, which happens while the cluster has no leader.
    """
    return isinstance(why, NoLeader) or isinstance(why.__cause__, RequestTimeout)


def needs_pause(error: TwinstreamError) -> bool:
    """Return whether to pause before a retry.

    This is the case if the server refused the message or if there were no responders.
    """
    return isinstance(error, NoResponders | JetStreamError)
