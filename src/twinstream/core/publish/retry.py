"""When a publish is sent again, and what its last failure means.

A message may be sent again when it is certain that nothing was stored: nobody took it (503), or
the server said that it could not judge it yet. After a time-out or a broken link that is unknown,
and only a message id or an expectation keeps a repeat from being stored twice.

Peers repeat a 503 twice, 250 milliseconds apart, which is about what the election of a leader
takes after one that stepped down. That is the default here; where a stream has no leader then, or
holds the message id for one in process, the default goes on: a leader that was lost is replaced
after some seconds, and what it had in process ends with it.
"""

from __future__ import annotations

from enum import Enum, auto
from functools import lru_cache
from typing import Final

from attrs import evolve, field, frozen

from twinstream.core.deadline import Seconds, finite_seconds
from twinstream.errors import (
    BadArgument,
    ConnectionLost,
    JetStreamError,
    MessageIdInProcess,
    NoLeader,
    NoResponders,
    PermissionDenied,
    RequestTimeout,
    TwinstreamError,
)

__all__ = [
    "RetryPolicy",
    "Step",
    "leaves_doubt",
    "may_get_leader",
    "needs_pause",
    "next_step",
    "passes",
    "retry_policy",
]

# The id is being stored, the expectation cannot be judged yet, too many requests: each says that
# this attempt was not stored, and passes.
_PASSING: Final = frozenset({10158, 10163, 10167})

# What a leader that has just stepped down says before 2.12, with no code: it proposed nothing.
_NOT_LEADER: Final = "raft: not leader"

_RETRIES: Final = 2
# Seconds; whoever wants shorter pauses would flood a stream that has no leader for long.
_LEAST_WAIT: Final = 0.01

# Within so many seconds a server says that it has no leader for a stream.
_HEARING: Final = 0.5

# The part of the whole time that is kept for asking why no acknowledgement comes (seconds).
_QUESTION: Final = 1.0


def _retries(value: int) -> int:
    if type(value) is not int or value < 0:
        raise BadArgument(f"retries must be a number from 0 up, got {value!r}")
    return value


def _wait(value: Seconds) -> float:
    return finite_seconds(value, "retry_wait")


@frozen
class RetryPolicy:
    """How often a publish is sent again, and seconds between attempts that were turned away."""

    retries: int = field(default=_RETRIES, converter=_retries)
    wait: float = field(default=0.25, converter=_wait)
    waits_for_leader: bool = False
    """Whether a stream that has no leader, or an id in process, is tried until the time is over."""

    def left(
        self, attempts: int, seconds: float, error: TwinstreamError, *, lacks_leader: bool
    ) -> int:
        """Return how many attempts there may be after `attempts`, the last of which met `error`.

        `seconds` is the time that is left, `lacks_leader` whether the stream is known to have none.
        """
        if lacks_leader and isinstance(error, NoResponders):
            return int(self.may_wait_for_leader(seconds))
        if isinstance(error, MessageIdInProcess) and self.may_wait_for_leader(seconds):
            return 1
        if seconds <= (self.wait if needs_pause(error) else 0.0):
            return 0
        return max(self.retries + 1 - attempts, 0)

    def may_wait_for_leader(self, left: float) -> bool:
        """Tell whether `left` seconds are enough to pause, send again and hear of it.

        A last attempt that is not answered in time would put in doubt what is certain before.
        """
        return self.waits_for_leader and left > self.wait + _HEARING

    def patience(self, left: float, repeatable: bool, attempts: int) -> float:
        """Return how many of the `left` seconds to wait for the answer to the next attempt.

        `attempts` were made before. Where a repeat is possible, all get an equal share;
        otherwise a little is kept back for asking why there is no answer.
        """
        if repeatable and attempts < self.retries:
            return left / (self.retries + 1 - attempts)
        return max(left * 0.8, left - _QUESTION)


# Nearly every publish has the same policy, and checking it is a tenth of the work of one.
@lru_cache(maxsize=64, typed=True)
def retry_policy(retries: int | None, wait: Seconds) -> RetryPolicy:
    """Return a `RetryPolicy`, made and checked once; None is twice, and on without a leader."""
    if retries is not None:
        return RetryPolicy(retries, wait)
    policy = RetryPolicy(wait=wait)
    return evolve(policy, waits_for_leader=policy.wait >= _LEAST_WAIT)


class Step(Enum):
    """What to do after an attempt failed."""

    REPEAT = auto()
    """Send it again."""
    PROVE = auto()
    """Find out whether an attempt without an answer was stored after all."""
    EXPLAIN = auto()
    """Find out why nobody answers, then fail."""
    FAIL = auto()
    """The error says it all."""


def next_step(error: TwinstreamError, *, repeatable: bool, doubt: bool, left: int) -> Step:
    """Return what to do after an attempt failed.

    `repeatable` is that of the message, `left` how many attempts there may be, and `doubt`
    whether an earlier one may have been stored.
    """
    match error:
        case NoResponders():
            return Step.REPEAT if left else Step.EXPLAIN
        case RequestTimeout():
            return Step.REPEAT if left and repeatable else Step.EXPLAIN
        case ConnectionLost():
            return Step.REPEAT if left and repeatable else Step.FAIL
        case JetStreamError() if left and passes(error):
            return Step.REPEAT
        case JetStreamError() | BadArgument() | PermissionDenied() if doubt:
            # It may be refused because the earlier one is there, be too large for this server, or
            # be permitted no more.
            return Step.PROVE
        case _:
            return Step.FAIL


def passes(error: JetStreamError) -> bool:
    """Tell whether a refusal says that nothing was stored now, and that trying again may do."""
    return error.err_code in _PASSING or error.description == _NOT_LEADER


def leaves_doubt(error: TwinstreamError) -> bool:
    """Tell whether the attempt that failed may have been stored."""
    return isinstance(error, RequestTimeout | ConnectionLost)


def may_get_leader(why: NoResponders) -> bool:
    """Tell whether what took nothing may do so soon: no leader is there, or none that answers."""
    return isinstance(why, NoLeader) or isinstance(why.__cause__, RequestTimeout)


def needs_pause(error: TwinstreamError) -> bool:
    """Tell whether the next attempt should wait: the server was there and turned this one away."""
    return isinstance(error, NoResponders | JetStreamError)
