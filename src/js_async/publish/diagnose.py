"""Why no stream took a message; nothing of this is asked while all goes well."""

from __future__ import annotations

from typing import Final

import twinstream.models
from js_async.api.api import Api
from twinstream.core.deadline import Deadline
from twinstream.errors import (
    JetStreamError,
    JetStreamOff,
    NoLeader,
    NoResponders,
    NoStream,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.core.api.idempotent_calls import CLUSTER_WITHOUT_LEADER

__all__ = ["Reasons", "reason"]

# An answer that explains is worth so many seconds; the failure is certain without it.
_PATIENCE: Final = 1.0


async def reason(
    api: Api, subject: str, deadline: Deadline, *, silent: bool = False
) -> NoResponders:
    """Return the error that tells why no stream takes messages on a subject; see `Reasons.of`."""
    return await Reasons(api).of(subject, deadline, silent=silent)


class Reasons:
    """Finds out why messages that failed together were not taken.

    It asks about a subject and about a stream once, and nothing more once nobody answers, so that
    thousands of failures do not wait for one another. What it knows is soon out of date.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._found: Final[dict[tuple[str, bool], NoResponders]] = {}
        self._streams: Final[dict[str, twinstream.models.StreamInfo | TwinstreamError]] = {}
        self._silence: RequestTimeout | None = None

    async def of(self, subject: str, deadline: Deadline, *, silent: bool = False) -> NoResponders:
        """Return the error that tells why no stream takes messages on a subject.

        With `silent`, nobody said so and the message had no answer: its words leave open what
        became of it.
        """
        found = self._found.get((subject, silent))
        if found is None:
            found = await self._ask(subject, deadline, silent=silent)
            self._found[subject, silent] = found
        return found

    async def _ask(self, subject: str, deadline: Deadline, *, silent: bool) -> NoResponders:
        nobody = f"{subject}: no stream {'answered' if silent else 'took the message'}"
        if self._silence is not None:
            return _unexplained(nobody, self._silence)
        deadline = Deadline.after(min(deadline.remaining(), _PATIENCE))
        try:
            name = await self._stream_of(subject, deadline)
            if name is None:
                text = f"{subject}: no stream has this subject; create one, or mend the subject"
                return NoStream(text)
            stream = await self._stream(name, deadline)
            if silent and isinstance(stream, twinstream.models.StreamInfo) and stream.config.no_ack:
                return NoResponders(
                    f"{subject}: stream {name} has no_ack, so it acknowledges nothing; publish to"
                    " it with Connection.publish, or set no_ack=False"
                )
            return _leaderless(subject, name, _state(stream), silent=silent)
        except NoResponders as error:
            return _because(JetStreamOff(f"{nobody}; {error}"), error)
        except JetStreamError as error:
            if error.err_code in CLUSTER_WITHOUT_LEADER:
                text = "JetStream's cluster has no leader now"
                return _because(NoLeader(f"{nobody}; {text}"), error)
            return _unexplained(nobody, error)
        except TwinstreamError as error:
            if isinstance(error, RequestTimeout):
                self._silence = error
            return _unexplained(nobody, error)

    async def _stream_of(self, subject: str, deadline: Deadline) -> str | None:
        target = self._api.subjects.streams("NAMES")
        # That the cluster has no leader is an answer here, so it is asked once.
        names = await self._api.call(
            target,
            {"subject": subject},
            twinstream.models.StreamNamesResponse,
            deadline,
            repeatable=False,
        )
        return names.streams[0] if names.streams else None

    async def _stream(
        self, name: str, deadline: Deadline
    ) -> twinstream.models.StreamInfo | TwinstreamError:
        """Return a stream that did not take a message, or why nothing is known of it."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = await self._ask_stream(name, deadline)
        return stream

    async def _ask_stream(
        self, name: str, deadline: Deadline
    ) -> twinstream.models.StreamInfo | TwinstreamError:
        target = self._api.subjects.stream("INFO", name)
        try:
            return await self._api.call(
                target, None, twinstream.models.StreamInfoResponse, deadline, repeatable=False
            )
        except TwinstreamError as error:
            return error


def _state(stream: twinstream.models.StreamInfo | TwinstreamError) -> str:
    if isinstance(stream, TwinstreamError):
        return f"it does not answer ({stream})"
    leader = stream.cluster.leader if stream.cluster is not None else ""
    return f"its leader is {leader} by now" if leader else "it has no leader"


def _leaderless(subject: str, name: str, state: str, *, silent: bool) -> NoLeader:
    if silent:  # it may be stored, so nobody is told to publish it again
        return NoLeader(f"{subject}: stream {name} did not answer; {state}")
    return NoLeader(f"{subject}: stream {name} did not take the message; {state}. Publish it again")


def _unexplained(nobody: str, error: TwinstreamError) -> NoResponders:
    return _because(NoResponders(f"{nobody}; why is unknown, asking failed: {error}"), error)


def _because(error: NoResponders, cause: TwinstreamError) -> NoResponders:
    error.__cause__ = cause
    return error
