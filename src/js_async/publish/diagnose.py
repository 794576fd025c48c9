"""Find out why no stream stored a message. This code runs only after a failure."""

from __future__ import annotations

from typing import Final

import twinstream.models
from js_async.api.api import Api
from twinstream.core.deadline import Deadline
from twinstream.errors import (
    JetStreamError,
    JetStreamNotEnabled,
    NoLeader,
    NoResponders,
    NoStream,
    RequestTimeout,
    TwinstreamError,
)
from twinstream.models.error_codes import CLUSTER_NOT_AVAILABLE, CLUSTER_NOT_LEADER

__all__ = ["Diagnosis", "reason"]

# Maximum duration of a diagnosis (seconds).
_PATIENCE: Final = 1.0


async def reason(
    api: Api, subject: str, deadline: Deadline, *, silent: bool = False
) -> NoResponders:
    """Return an error that explains why no stream stored a message; see `Diagnosis.of`."""
    return await Diagnosis(api).of(subject, deadline, silent=silent)


class Diagnosis:
    """A cache of explanations why messages were not stored.

    It sends one request for each subject and each stream, and no further request after the first
    timeout, so that thousands of messages do not cause thousands of requests. The explanations are
    soon outdated, so use an instance only for messages that failed together.
    """

    def __init__(self, api: Api) -> None:
        self._api: Final = api
        self._found: Final[dict[tuple[str, bool], NoResponders]] = {}
        self._streams: Final[dict[str, twinstream.models.StreamInfo | TwinstreamError]] = {}
        self._silence: RequestTimeout | None = None

    async def of(self, subject: str, deadline: Deadline, *, silent: bool = False) -> NoResponders:
        """Return an error that explains why no stream stored a message with this subject.

        Set `silent` if the message got no reply at all, not even `no responders`. Such a message
        may be stored, so the text of the error does not state that it is not.
        """
        found = self._found.get((subject, silent))
        if found is None:
            found = await self._explain(subject, deadline, silent=silent)
            self._found[subject, silent] = found
        return found

    async def _explain(self, subject: str, deadline: Deadline, *, silent: bool) -> NoResponders:
        """Return an error that explains why no stream stored a message, from at most two requests.

        `silent` means that the message got no reply at all, so a stream may have stored it.
        """
        problem = f"{subject}: no stream {'answered' if silent else 'took the message'}"
        if self._silence is not None:
            return _unexplained(problem, self._silence)
        deadline = Deadline.after(min(deadline.remaining(), _PATIENCE))
        try:
            name = await self._stream_of(subject, deadline)
            if name is None:
                text = f"{subject}: no stream has this subject; create one, or correct the subject"
                return NoStream(text)
            stream = await self._stream(name, deadline)
            if silent and isinstance(stream, twinstream.models.StreamInfo) and stream.config.no_ack:
                return NoResponders(
                    f"{subject}: stream {name} has no_ack, so it acknowledges nothing; publish to"
                    " it with Connection.publish, or set no_ack=False"
                )
            return _leaderless(subject, name, _state(stream), silent=silent)
        except NoResponders as error:
            # No stream answered the message, even if a server answered the request.
            off = JetStreamNotEnabled(f"{problem}; {error}", code=503, err_code=0)
            return _because(off, error)
        except JetStreamError as error:
            if error.err_code in {CLUSTER_NOT_AVAILABLE, CLUSTER_NOT_LEADER}:
                text = "JetStream's cluster has no leader now"
                return _because(NoLeader(f"{problem}; {text}"), error)
            return _unexplained(problem, error)
        except TwinstreamError as error:
            if isinstance(error, RequestTimeout):
                self._silence = error
            return _unexplained(problem, error)

    async def _stream_of(self, subject: str, deadline: Deadline) -> str | None:
        target = self._api.subjects.streams("NAMES")
        # Do not repeat the request. If it fails because the cluster has no leader, this is also the
        # reason why the message was not stored.
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
        """Return the info of a stream, or the error of the info request."""
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
        return f"it does not respond ({stream})"
    leader = stream.cluster.leader if stream.cluster is not None else ""
    return f"its leader is now {leader}" if leader else "it has no leader"


def _leaderless(subject: str, name: str, state: str, *, silent: bool) -> NoLeader:
    if silent:  # the message may be stored, so the text does not advise to publish it again
        return NoLeader(f"{subject}: stream {name} did not respond; {state}")
    return NoLeader(f"{subject}: stream {name} did not take the message; {state}. Publish it again")


def _unexplained(problem: str, error: TwinstreamError) -> NoResponders:
    return _because(NoResponders(f"{problem}; the reason is unknown: {error}"), error)


def _because(error: NoResponders, cause: TwinstreamError) -> NoResponders:
    error.__cause__ = cause
    return error
