"""Publishing to a scripted server: late, unusual, refusing and missing responses."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial, wraps
from inspect import Signature

import pytest

import js_async as js
from tests._async.flow import ended, eventually, together
from tests._async.scripted import scripted
from tests.hooked import starts
from tests.inside import session_of
from twinstream.core.deadline import Deadline
from twinstream.errors import InvalidResponse, MessageIdInProcess
from twinstream.models import PubAck
from twinstream.models.error_codes import ROLLUP_NOT_PERMITTED
from twinstream.testing import FakePeer, FakeServer, ScriptError
from twinstream.testing.fake_wire import message_frame

pytestmark = pytest.mark.timed(1)
QUICK = js.ReconnectPolicy(wait=0.01, max_wait=0.05, attempts=-1)
ORDERS = r"^H?PUB orders "


def refuse(peer: FakePeer, request, err_code: int, code: int = 400) -> None:
    peer.answer(request, {"error": {"code": code, "err_code": err_code, "description": "no"}})


def names(peer: FakePeer, *streams: str) -> None:
    """Answer the request for the streams that capture the subject."""
    peer.answer(peer.expect(r"STREAM\.NAMES"), {"streams": list(streams), "total": len(streams)})


def described(peer: FakePeer, cluster=None) -> None:
    """Answer the request for the stream's info."""
    state = {"messages": 0, "bytes": 0, "first_seq": 0, "last_seq": 0, "consumer_count": 0}
    times = {"created": "2026-01-01T00:00:00Z"}
    zero = "0001-01-01T00:00:00Z"
    info = {"config": {"name": "S"}, "state": {**state, "first_ts": zero, "last_ts": zero}, **times}
    answer = info if cluster is None else {**info, "cluster": cluster}
    peer.answer(peer.expect(r"STREAM\.INFO\.S"), answer)


def stored(peer: FakePeer, request, seq: int = 1, **more) -> None:
    peer.answer(request, {"stream": "S", "seq": seq, **more})


async def is_done(sent):
    return sent.is_done


def both(test):
    """Run a test with each of the three ways to publish."""
    return pytest.mark.parametrize("way", [one, many, handle], ids=lambda way: way.__name__)(test)


def at_once(*cases):
    """Let a test that waits for timeouts publish in each of the three ways at the same time.

    `cases` are the values of its second parameter, if it has one.
    """

    def decorate(test):
        @wraps(test)
        async def run():
            arguments = [(way, *case) for way in (one, many, handle) for case in given]
            await together(*(partial(test, *each) for each in arguments))

        run.__signature__ = Signature()
        return run

    given = [(case,) for case in cases] or [()]
    return decorate


async def one(jet, **options):
    fate = {key: options.pop(key) for key in ("timeout", "retry_wait", "retries") if key in options}
    return await jet.publish("orders", b"x", **options, **fate)


async def many(jet, **options):
    fate = {key: options.pop(key) for key in ("timeout", "retry_wait", "retries") if key in options}
    request = js.PublishRequest(subject="orders", data=b"x", **options)
    [outcome] = [each async for each in jet.publish_many([request], **fate, raise_failures=False)]
    if isinstance(outcome, js.PublishFailure):
        raise outcome.error
    return outcome


async def handle(jet, **options):
    fate = {key: options.pop(key) for key in ("timeout", "retry_wait", "retries") if key in options}
    async with jet.publisher(**fate) as publisher:
        sent = await publisher.send("orders", b"x", **options)
        return await sent.result()


@both
async def test_no_responders_is_retried_then_explained(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.message(peer.expect(ORDERS).reply, status="503")
        names(peer)
        for _ in range(2):
            peer.message(peer.expect(ORDERS).reply, status="503")
        stored(peer, peer.expect(ORDERS), 7)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(js.NoStream, match="orders: no stream has this subject"):
            await way(jet, retry_wait=0.01)
        assert (await way(jet, retry_wait=0.01)).seq == 7


class EarlyAnswer:
    """A transport on which a 503 refuses the second message before `try_send` returns."""

    def __init__(self, transport):
        self._transport = transport
        self._take = None
        self.sent = 0

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def open_mailbox(self, subject, queue=b"", sink=None):
        def noted(box):
            self._take = sink(box)
            return self._take

        return await self._transport.open_mailbox(subject, queue, sink and noted)

    def write(self, subject, reply, *parts):
        is_sent = self._transport.write(subject, reply, *parts)
        if is_sent and subject == b"orders":
            self.sent += 1
            if self.sent == 2:
                # As if another thread read the second 503 just now.
                status = b"NATS/1.0 503\r\n\r\n"
                self._take((reply, b"", len(status), status))
        return is_sent


@pytest.mark.parametrize("way", [many, handle], ids=lambda way: way.__name__)
async def test_an_answer_that_is_here_before_sending_returns_counts(way):
    """Another thread may read the response while this thread is still sending."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.message(peer.expect(ORDERS).reply, status="503")
        peer.expect(ORDERS)
        stored(peer, peer.expect(ORDERS))

    async with scripted(script) as connection:
        early = EarlyAnswer(session_of(connection))
        assert (await way(js.JetStream(early), retry_wait=0.01, timeout=30)).seq == 1
    assert early.sent == 3


@both
async def test_stream_without_a_leader_is_distinguished(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for leader in ("", "n1"):
            peer.message(peer.expect(ORDERS).reply, status="503")
            names(peer, "S")
            described(peer, {"name": "c", "leader": leader})

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(js.NoLeader, match="S did not take the message; it has no leader"):
            await way(jet, retries=0)
        with pytest.raises(js.NoLeader, match="its leader is now n1"):
            await way(jet, retries=0)


@both
async def test_a_leader_is_waited_for_until_the_timeout(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(3):
            peer.message(peer.expect(ORDERS).reply, status="503")
        names(peer, "S")
        described(peer, {"name": "c", "leader": ""})
        for _ in range(5):
            peer.message(peer.expect(ORDERS).reply, status="503")
        stored(peer, peer.expect(ORDERS), 7)

    async with scripted(script) as connection:
        assert (await way(connection.jetstream(), retry_wait=0.01, timeout=30)).seq == 7


@at_once()
async def test_missing_leader_is_reported_at_the_timeout(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        # Until it leaves.
        with suppress(ScriptError):
            while True:
                asked = peer.expect(rf"{ORDERS}|STREAM\.")
                if asked.subject == "orders":
                    peer.message(asked.reply, status="503")
                elif "NAMES" in asked.subject:
                    peer.answer(asked, {"streams": ["S"], "total": 1})
                else:
                    refuse(peer, asked, 10009, 503)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.NoLeader, match="S did not take the message"):
                await way(connection.jetstream(), retry_wait=0.05, timeout=2)
        assert len(server.operations(ORDERS)) > 3


@both
async def test_cluster_without_a_leader_is_distinguished(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.message(peer.expect(ORDERS).reply, status="503")
        refuse(peer, peer.expect(r"STREAM\.NAMES"), 10008, 503)
        peer.message(peer.expect(ORDERS).reply, status="503")
        refuse(peer, peer.expect(r"STREAM\.NAMES"), 10052, 500)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(js.NoLeader, match="cluster has no leader"):
            await way(jet, retries=0)
        with pytest.raises(js.NoResponders, match="the reason is unknown") as caught:
            await way(jet, retries=0)
        assert type(caught.value) is js.NoResponders


@both
async def test_disabled_jetstream_is_distinguished(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.message(peer.expect(ORDERS).reply, status="503")
        peer.message(peer.expect(r"STREAM\.NAMES").reply, status="503")
        peer.message(peer.expect(ORDERS).reply, status="503")
        refuse(peer, peer.expect(r"STREAM\.NAMES"), 10039, 503)

    async with scripted(script) as connection:
        for _ in range(2):
            with pytest.raises(js.JetStreamNotEnabled, match="orders"):
                await way(connection.jetstream(), retries=0)


@both
async def test_denied_subject_is_reported_at_once(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.error('Permissions Violation for Publish to "orders"')

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.PermissionDenied, match="orders"):
                await way(connection.jetstream(), timeout=60)
        assert len(server.operations(ORDERS)) == 1


@at_once()
async def test_what_is_denied_after_silence_may_be_stored(way):
    """Permissions can be changed at any time, and apply to later messages."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        for _ in ("again", "the question whether it is there"):
            peer.expect(ORDERS)
            peer.error('Permissions Violation for Publish to "orders"')

    async with scripted(script) as connection:
        with pytest.raises(js.OutcomeUnknown, match="could not be determined") as caught:
            await way(connection.jetstream(), timeout=3, msg_id="1")
        assert isinstance(caught.value.__cause__, js.PermissionDenied)


def long_enough(way):
    """Return a timeout that leaves a second for the diagnosis, at the end or after it."""
    return 5 if way is one else 1


@at_once()
async def test_a_plain_message_without_an_answer_is_sent_once(way):
    """It is unknown whether the message was stored, and a repeat could store it twice."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        names(peer)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.RequestTimeout, match=r"may be stored.*no stream has") as caught:
                await way(connection.jetstream(), timeout=long_enough(way))
            assert "1 attempts" not in str(caught.value)
            assert isinstance(caught.value.__cause__, js.NoStream)
        assert len(server.operations(ORDERS)) == 1


@at_once()
async def test_what_may_be_stored_is_not_to_be_published_again(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        names(peer, "S")
        described(peer, {"name": "c", "leader": "n1"})

    async with scripted(script) as connection:
        with pytest.raises(js.RequestTimeout, match=r"may be stored.*S did not respond") as met:
            await way(connection.jetstream(), timeout=long_enough(way))
        assert "again" not in str(met.value)


async def test_late_no_responders_explains_an_earlier_silence():
    """The 503 arrives while the client finds out the reason for a timeout: nothing was stored."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        request = peer.expect(ORDERS)
        question = peer.expect(r"STREAM\.NAMES")
        peer.message(request.reply, status="503")
        peer.answer(question, {"streams": [], "total": 0, "offset": 0, "limit": 1024})
        peer.until_left(timeout=30)

    async with scripted(script) as connection:
        requests = [js.PublishRequest(subject="orders")]
        jet = connection.jetstream()
        outcomes = jet.publish_many(requests, timeout=1, raise_failures=False)
        failures = [each async for each in outcomes]
        assert [type(each.error) for each in failures] == [js.NoStream]


@at_once({"msg_id": "1"}, {"expected_last_seq": 3})
async def test_a_safe_message_is_sent_again_after_silence(way, promise):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.expect(ORDERS)
        stored(peer, peer.expect(ORDERS), 4)

    async with scripted(script) as connection:
        assert (await way(connection.jetstream(), timeout=3, **promise)).seq == 4


@at_once()
async def test_expected_stream_alone_makes_no_retry_safe(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        names(peer, "S")
        described(peer)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.RequestTimeout) as caught:
                await way(connection.jetstream(), timeout=long_enough(way), expected_stream="S")
            assert isinstance(caught.value.__cause__, js.NoLeader)
        assert len(server.operations(ORDERS)) == 1


@at_once(True, False)
async def test_a_refusal_after_silence_is_cleared_up_by_the_message_id(way, known):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        refuse(peer, peer.expect(ORDERS), 10071)
        question = peer.expect(ORDERS)
        assert question.headers.split(b"\r\n")[1:3] == [b"Nats-Msg-Id: 1", b"Nats-Rollup: none"]
        if known:
            stored(peer, question, 4, duplicate=True)
        else:
            refuse(peer, question, 10111)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        options = {"timeout": 3, "msg_id": "1", "expected_last_seq": 3}
        if known:
            assert (await way(jet, **options)).seq == 4
        else:
            with pytest.raises(js.WrongLastSequence):
                await way(jet, **options)


@at_once()
async def test_foreign_responses_to_a_verification_are_ignored(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        refuse(peer, peer.expect(ORDERS), 10071)
        question = peer.expect(ORDERS)
        peer.answer(question, b"heard you")
        peer.fence()
        stored(peer, question, 4, duplicate=True)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        assert (await way(jet, timeout=3, msg_id="1", expected_last_seq=3)).seq == 4


@at_once()
async def test_a_refusal_after_silence_stays_unknown_where_nothing_proves_it(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for promise in ("none", "id"):
            peer.expect(ORDERS)
            refuse(peer, peer.expect(ORDERS), 10164)
            if promise == "id":
                refuse(peer, peer.expect(ORDERS), 10077)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        with pytest.raises(js.OutcomeUnknown, match="msg_id") as caught:
            await way(jet, timeout=3, expected_last_subject_seq=3)
        assert isinstance(caught.value.__cause__, js.WrongLastSequence)
        with pytest.raises(js.OutcomeUnknown, match="could not be determined"):
            await way(jet, timeout=3, expected_last_subject_seq=3, msg_id="1")


def behind(peer: FakePeer, request, last: int) -> None:
    """Refuse the expected sequence as a replica whose last one is `last`."""
    text = f"wrong last sequence: {last}"
    error = {"code": 400, "err_code": 10071, "description": text}
    peer.answer(request, {"error": error, "stream": "S", "seq": 0})


def long(way) -> float:
    """Return seconds in which a second answer arrives on a busy machine."""
    # A pipeline sleeps for the whole time, even if the answer arrives.
    return 20.0 if way is one else 2.0


@both
async def test_the_leader_acknowledges_what_a_former_leader_refused(way):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        request = peer.expect(ORDERS)
        behind(peer, request, 4)
        peer.fence()
        stored(peer, request, 10)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            options = {"expected_last_subject_seq": 9, "retry_wait": long(way)}
            assert (await way(connection.jetstream(), timeout=30, **options)).seq == 10
        assert len(server.operations(ORDERS)) == 1


@both
@pytest.mark.parametrize("name", ["Last-Subject-Sequence", "Last-Sequence"])
async def test_an_expectation_in_a_header_is_one(way, name, tuned):
    """A former leader may refuse it, too. The message is not sent again, as without the header."""

    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        request = peer.expect(ORDERS)
        behind(peer, request, 4)
        peer.fence()
        stored(peer, request, 10)
        behind(peer, peer.expect(ORDERS), 4)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            options = {"headers": {f"Nats-Expected-{name}": "9"}, "timeout": 30}
            tuned("answer of the leader", long(way))
            assert (await way(jet, retry_wait=long(way), **options)).seq == 10
            with pytest.raises(js.WrongLastSequence, match="wrong last sequence: 4"):
                await way(jet, retry_wait=0.01, **options)
        assert len(server.operations(ORDERS)) == 2


@both
async def test_a_message_that_only_a_former_leader_got_is_sent_again(way):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        behind(peer, peer.expect(ORDERS), 4)
        stored(peer, peer.expect(ORDERS), 10)

    async with scripted(script) as connection:
        options = {"expected_last_subject_seq": 9, "retry_wait": 0.01}
        assert (await way(connection.jetstream(), **options)).seq == 10


@both
@pytest.mark.parametrize("known", [True, False])
async def test_refused_by_the_leader_after_a_former_one_refused(way, known):
    """The first attempt may be the reason why the leader refuses the second one."""

    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        behind(peer, peer.expect(ORDERS), 4)
        behind(peer, peer.expect(ORDERS), 10)
        if known:
            stored(peer, peer.expect(ORDERS), 10, duplicate=True)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        options = {"expected_last_subject_seq": 9, "retry_wait": 0.01, "timeout": 30}
        if known:
            assert (await way(jet, msg_id="1", **options)).seq == 10
        else:
            with pytest.raises(js.OutcomeUnknown):
                await way(jet, **options)


@both
@pytest.mark.parametrize(
    ("info", "retries", "attempts"),
    [({"cluster": "c"}, 2, 2), ({"cluster": "c"}, 0, 1), ({}, 2, 1)],
)
async def test_a_sequence_that_was_removed_is_refused(way, info, retries, attempts):
    def script(peer: FakePeer) -> None:
        peer.handshake(**info)
        for _ in range(attempts):
            behind(peer, peer.expect(ORDERS), 4)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            options = {"expected_last_seq": 9, "retry_wait": 0.01, "retries": retries}
            with pytest.raises(js.WrongLastSequence, match="wrong last sequence: 4"):
                await way(connection.jetstream(), **options)
        assert len(server.operations(ORDERS)) == attempts


def in_flight(peer: FakePeer, request) -> None:
    """Refuse a message as a replica that has another write of the subject in flight."""
    error = {"code": 400, "err_code": 10164, "description": "wrong last sequence"}
    peer.answer(request, {"error": error, "stream": "S", "seq": 0})


@both
@pytest.mark.parametrize("kind", ["in flight", "behind"])
async def test_the_leader_acknowledges_the_only_attempt(way, kind, tuned):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        request = peer.expect(ORDERS)
        in_flight(peer, request) if kind == "in flight" else behind(peer, request, 4)
        peer.fence()
        stored(peer, request, 10)
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            tuned("answer of the leader", long(way))
            retries = 2 if kind == "in flight" else 0
            options = {"expected_last_subject_seq": 9, "retries": retries, "retry_wait": long(way)}
            assert (await way(connection.jetstream(), **options)).seq == 10
        assert len(server.operations(ORDERS)) == 1


@both
async def test_a_write_in_flight_that_nothing_follows_is_the_refusal(way):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        in_flight(peer, peer.expect(ORDERS))
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            with pytest.raises(js.WrongLastSequence):
                await way(connection.jetstream(), expected_last_subject_seq=9)
        assert len(server.operations(ORDERS)) == 1


@both
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("seq", [10, ROLLUP_NOT_PERMITTED])
async def test_a_former_leader_does_not_know_the_id_of_a_stored_message(way, known, seq, tuned):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        peer.expect(ORDERS)
        behind(peer, peer.expect(ORDERS), 10)
        probe = peer.expect(ORDERS)
        refuse(peer, probe, ROLLUP_NOT_PERMITTED)
        if known:
            peer.fence()
            stored(peer, probe, seq, duplicate=True)
        peer.until_left()

    async with scripted(script) as connection:
        options = {"expected_last_subject_seq": 9, "timeout": 3, "msg_id": "1"}
        if known:
            tuned("answer of a probe", 20.0)
            assert (await way(connection.jetstream(), **options)).seq == seq
        else:
            with pytest.raises(js.WrongLastSequence):
                await way(connection.jetstream(), **options)


@both
@pytest.mark.parametrize("first", ["core", "stream"])
async def test_a_core_responder_does_not_hide_a_refusal(way, first):
    def script(peer: FakePeer) -> None:
        peer.handshake(cluster="c")
        for _ in range(2):
            request = peer.expect(ORDERS)
            if first == "core":
                peer.answer(request, b"heard you")
            behind(peer, request, 4)
            if first == "stream":
                peer.answer(request, b"heard you")
        peer.until_left()

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            options = {"expected_last_seq": 9, "retry_wait": 0.01, "timeout": 30}
            with pytest.raises(js.WrongLastSequence, match="wrong last sequence: 4"):
                await way(connection.jetstream(), **options)
        assert len(server.operations(ORDERS)) == 2


@both
async def test_the_question_what_was_stored_is_repeated_on_the_next_connection(way):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        refuse(peer, peer.expect(ORDERS), 10071)
        assert b"Nats-Rollup" in peer.expect(ORDERS).headers
        peer.reset()

    def third(peer: FakePeer) -> None:
        peer.handshake()
        busy = peer.expect(ORDERS)
        assert b"Nats-Rollup" in busy.headers
        refuse(peer, busy, 10158, 409)
        stored(peer, peer.expect(ORDERS), 4, duplicate=True)
        peer.until_left()

    async with scripted(first, second, third, reconnect=QUICK) as connection:
        options = {"timeout": 30, "msg_id": "1", "expected_last_seq": 3}
        assert (await way(connection.jetstream(), **options)).seq == 4


@at_once()
async def test_no_responders_after_a_timeout_leaves_the_outcome_unknown(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.message(peer.expect(ORDERS).reply, status="503")
        names(peer)

    async with scripted(script) as connection:
        with pytest.raises(js.OutcomeUnknown, match="earlier attempt") as caught:
            await way(connection.jetstream(), timeout=2, retries=1, msg_id="1")
        assert isinstance(caught.value.__cause__, js.NoStream)


@both
@pytest.mark.parametrize("err_code", [10158, 10163, 10167])
async def test_a_refusal_that_passes_is_tried_again(way, err_code):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        refuse(peer, peer.expect(ORDERS), err_code)
        stored(peer, peer.expect(ORDERS))
        for _ in range(2):
            refuse(peer, peer.expect(ORDERS), err_code)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        assert (await way(jet, retry_wait=0.01)).seq == 1
        with pytest.raises(js.JetStreamError) as caught:
            await way(jet, retries=1, retry_wait=0.01)
        assert caught.value.err_code == err_code


@both
async def test_an_id_in_process_is_waited_for(way):
    """A lost leader was storing the id. Its successor stored the message, or never received it."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        for _ in range(6):
            refuse(peer, peer.expect(ORDERS), 10158)
        stored(peer, peer.expect(ORDERS))
        for _ in range(2):
            refuse(peer, peer.expect(ORDERS), 10158)

    async with scripted(script) as connection:
        jet = connection.jetstream()
        assert (await way(jet, retry_wait=0.01, msg_id="1")).seq == 1
        with pytest.raises(MessageIdInProcess, match="after the stream's duplicate_window"):
            await way(jet, retries=1, retry_wait=0.01, msg_id="1")


@both
async def test_a_broken_link_is_survived_by_what_is_safe(way):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake()
        stored(peer, peer.expect(ORDERS), 9, duplicate=True)
        peer.expect(ORDERS)
        peer.reset()

    def third(peer: FakePeer) -> None:
        peer.handshake()
        peer.until_left()

    async with scripted(first, second, third, reconnect=QUICK) as connection:
        jet = connection.jetstream()
        assert (await way(jet, msg_id="1")).seq == 9
        with pytest.raises(js.ConnectionLost):
            await way(jet)

        async def back():
            return connection.stats.connects == 3

        await eventually(back)


@both
async def test_what_is_too_large_for_the_next_server_may_be_stored_by_the_last_one(way):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.reset()

    def second(peer: FakePeer) -> None:
        # Too little for the question, too.
        peer.handshake(max_payload=20)
        peer.until_left()

    with FakeServer(first, second) as server:
        async with js.connect(server.url, reconnect=QUICK) as connection:
            with pytest.raises(js.OutcomeUnknown, match="could not be determined") as caught:
                await way(connection.jetstream(), msg_id="1", timeout=20)
        assert isinstance(caught.value.__cause__, js.BadArgument)


@both
async def test_what_the_next_server_does_not_take_is_found_where_it_is_stored(way):
    def first(peer: FakePeer) -> None:
        peer.handshake()
        peer.expect(ORDERS)
        peer.reset()

    def second(peer: FakePeer) -> None:
        peer.handshake(max_payload=100)
        question = peer.expect(ORDERS)
        assert b"Nats-Rollup" in question.headers
        stored(peer, question, 7, duplicate=True)
        peer.until_left()

    async with scripted(first, second, reconnect=QUICK) as connection:
        jet = connection.jetstream()
        assert (await way(jet, msg_id="1", headers={"A": 100 * "b"}, timeout=20)).seq == 7


@both
async def test_response_of_another_client_is_ignored(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        request = peer.expect(ORDERS)
        peer.answer(request, b"+OK")
        peer.fence()
        stored(peer, request, 5)

    async with scripted(script) as connection:
        assert (await way(connection.jetstream(), timeout=30)).seq == 5


@at_once()
async def test_somebody_else_alone_is_no_success(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        peer.answer(peer.expect(ORDERS), {"answer": 42})
        for question in peer.follow():
            if question.subject.endswith("STREAM.NAMES"):
                peer.answer(question, {"streams": [], "total": 0})

    async with scripted(script) as connection:
        with pytest.raises(InvalidResponse, match="42"):
            await way(connection.jetstream(), timeout=1)


@at_once()
async def test_an_acknowledgement_of_another_stream_than_expected_is_no_success(way):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        stored(peer, peer.expect(ORDERS))

    async with scripted(script) as connection:
        with pytest.raises(InvalidResponse, match="not the expected stream"):
            await way(connection.jetstream(), timeout=1, expected_stream="T")


async def test_unacknowledged_bytes_are_limited_by_the_window():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if request.subject.endswith("STREAM.NAMES"):
                peer.answer(request, {"streams": [], "total": 0})

    with FakeServer(script, patience=30) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            sent = 0

            def source():
                nonlocal sent
                for _ in range(100_000):
                    sent += 1
                    yield js.PublishRequest(subject="orders", data=bytes(1000))

            async def leave(**limits):
                async with jet.publish_many(source(), timeout=0.3, **limits) as outcomes:
                    async for outcome in outcomes:
                        assert isinstance(outcome.error, js.RequestTimeout)
                        break

            with pytest.raises(js.PublishFailures) as caught:
                await leave(window=50)
            # The first of them failed in time and made room for as many others as were late.
            assert sent <= 101
            assert caught.value.count == sent - 1
            sent = 0
            with pytest.raises(js.PublishFailures) as caught:
                await leave(window=1000, window_bytes=20_200)
            assert sent <= 41
            # Its keeper explains failures while `send` waits for room: neither starves the other.
            publisher = jet.publisher(window=50, timeout=0.3)
            for _ in range(120):
                await publisher.send("orders", bytes(1000))
                assert publisher.in_flight <= 50
            with pytest.raises(js.PublishFailures) as caught:
                await publisher.close()
            assert caught.value.count == 120
            assert len(caught.value.failures) == 100
            assert all(isinstance(each.error, js.RequestTimeout) for each in caught.value.failures)


async def test_failures_beyond_the_list_are_counted_until_they_are_looked_at():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for request in peer.follow():
            if request.subject == "orders":
                refuse(peer, request, 10077, 503)

    with FakeServer(script, patience=30) as server:
        async with js.connect(server.url) as connection:
            jet = connection.jetstream()
            publisher = jet.publisher()
            handles = [await publisher.send("orders") for _ in range(130)]
            for which in (handles[0], handles[120], handles[120]):
                with pytest.raises(js.StoreFailed):
                    await which.result()
            with pytest.raises(js.PublishFailures) as caught:
                await publisher.close()
            assert caught.value.count == 128


async def test_publisher_retries_and_times_out_while_no_call_waits():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        first = peer.expect(ORDERS)
        peer.message(first.reply, status="503")
        again = peer.expect(ORDERS)
        stored(peer, again)
        peer.expect(ORDERS)
        peer.reach("silence")
        peer.until_left(timeout=30)

    async with scripted(script) as connection:
        publisher = connection.jetstream().publisher(timeout=1.5)
        for _ in range(2):
            sent = await publisher.send("orders")
            await eventually(is_done, sent)
        with pytest.raises(js.PublishFailures):
            await publisher.close()


async def test_unclosed_publisher_ends_with_its_connection():
    """Messages in flight get an outcome first."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        stored(peer, peer.expect(ORDERS))
        peer.expect(ORDERS)
        peer.until_left(timeout=30)

    with FakeServer(script) as server:
        async with js.connect(server.url) as connection:
            publisher = connection.jetstream().publisher(timeout=30)
            with starts() as tasks:
                assert (await (await publisher.send("orders")).result()).seq == 1
            lost = await publisher.send("orders")
            assert not await tasks["twinstream-publisher"].join(Deadline.after(0.3))
        assert await tasks["twinstream-publisher"].join(Deadline.after(10))
        with pytest.raises(js.ConnectionClosed):
            await lost.result()


async def test_acknowledgements_in_any_order_are_outcomes_in_order():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        requests = [peer.expect(ORDERS) for _ in range(6)]
        for request in reversed(requests):
            stored(peer, request, int(request.payload) + 1)
            stored(peer, request, 99)

    async with scripted(script) as connection:
        requests = [js.PublishRequest(subject="orders", data=b"%d" % n) for n in range(6)]
        outcomes = connection.jetstream().publish_many(requests)
        assert [outcome.seq async for outcome in outcomes] == [1, 2, 3, 4, 5, 6]


class Cutting:
    """A transport that records how many bytes of acknowledgements are taken from each read."""

    def __init__(self, transport):
        self._transport = transport
        self.sizes = []

    def __getattr__(self, name):
        return getattr(self._transport, name)

    def cut_acks(self, cutter):
        self._transport.cut_acks(Noted(cutter, self.sizes))


class Noted:
    """A wrapper of the code that takes acknowledgements from a read, which records their sizes."""

    def __init__(self, cutter, sizes):
        self._cutter = cutter
        self._sizes = sizes

    def __getattr__(self, name):
        return getattr(self._cutter, name)

    def take(self, data):
        rest = self._cutter.take(data)
        self._sizes.append(len(data) - len(rest))
        return rest


async def test_acknowledgements_in_one_read_are_distinguished():
    """One read contains expected acknowledgements, late ones, and those of an unexpected stream."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        requests = [peer.expect(ORDERS) for _ in range(6)]
        # The first is read as JSON, one like it shows the others' shape; this one comes twice.
        peer.answer(requests[0], ack(1))
        peer.answer(requests[2], ack(4))
        peer.fence()
        peer.send(b"".join(together(peer, each, 2 + at) for at, each in enumerate(requests)))
        peer.fence()
        peer.answer(requests[3], {"stream": "T", "seq": 9})

    def together(peer: FakePeer, request, seq: int) -> bytes:
        return message_frame(request.reply, peer.sid(request.reply), "", b"", ack(seq))

    def ack(seq: int) -> bytes:
        return b'{"stream":"S", "seq":%d}' % seq

    async with scripted(script) as connection:
        names = [None, "S", None, "T", "S", None]
        requests = [js.PublishRequest(subject="orders", expected_stream=name) for name in names]
        cutting = Cutting(session_of(connection))
        outcomes = js.JetStream(cutting).publish_many(requests)
        found = [(outcome.stream, outcome.seq) async for outcome in outcomes]
    assert found == [("S", 1), ("S", 3), ("S", 4), ("T", 9), ("S", 6), ("S", 7)]
    assert max(cutting.sizes) > 0


async def test_the_order_of_what_is_sent_again_is_kept():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        requests = [peer.expect(ORDERS) for _ in range(6)]
        for request in requests:
            if int(request.payload) % 2:
                stored(peer, request, 10 + int(request.payload))
            else:
                peer.message(request.reply, status="503")
        for number in (0, 2, 4):
            request = peer.expect(ORDERS)
            assert request.payload == b"%d" % number
            stored(peer, request, 20 + number)

    async with scripted(script) as connection:
        requests = [js.PublishRequest(subject="orders", data=b"%d" % n) for n in range(6)]
        outcomes = connection.jetstream().publish_many(requests, retry_wait=0.01)
        assert [outcome.seq async for outcome in outcomes] == [20, 11, 22, 13, 24, 15]


async def test_outcomes_come_while_the_source_is_slow():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for number in range(3):
            stored(peer, peer.expect(ORDERS), number + 1)

    async with scripted(script) as connection:
        seen = []

        def source():
            for number in range(3):
                assert len(seen) >= number - 1
                yield js.PublishRequest(subject="orders", data=json.dumps(number).encode())

        async for outcome in connection.jetstream().publish_many(source(), window=1):
            assert isinstance(outcome, PubAck)
            seen.append(outcome.seq)
        assert seen == [1, 2, 3]


async def test_publish_many_that_is_left_without_closing_warns():
    def script(peer: FakePeer) -> None:
        peer.handshake()
        stored(peer, peer.expect(ORDERS))
        peer.expect("^UNSUB")

    async with scripted(script) as connection:
        requests = [js.PublishRequest(subject="orders") for _ in range(3)]
        outcomes = connection.jetstream().publish_many(requests, window=2)
        async for outcome in outcomes:
            assert outcome.seq == 1
            break
        with pytest.warns(ResourceWarning, match="2 messages in flight"):
            await ended(outcomes)


async def test_failures_of_many_subjects_are_explained_concurrently(tuned):
    """The server does not answer which streams exist, so each of these requests times out."""

    def script(peer: FakePeer) -> None:
        peer.handshake()
        sent = [peer.expect(r"^PUB orders\.\d+ ") for _ in range(20)]
        status = b"NATS/1.0 503\r\n\r\n"
        peer.send(
            b"".join(message_frame(e.reply, peer.sid(e.reply), "", status, b"") for e in sent)
        )
        asked.extend(each for each in peer.follow() if "STREAM.NAMES" in each.line)

    tuned("diagnosis time", 0.3)
    asked: list[object] = []
    async with scripted(script) as connection:
        requests = [(f"orders.{number}", b"x") for number in range(20)]
        outcomes = connection.jetstream().publish_many(requests, retries=0, raise_failures=False)
        failures = [outcome async for outcome in outcomes]
    assert all(type(each.error) is js.NoResponders for each in failures)
    assert [str(each.error).partition(":")[0] for each in failures] == [r[0] for r in requests]
    assert "the reason is unknown" in str(failures[-1].error)
    # Another one if the refusals did not come in one read.
    assert 1 <= len(asked) <= 2


async def test_stream_is_looked_up_once_for_many_of_its_subjects(tuned):
    def script(peer: FakePeer) -> None:
        peer.handshake()
        for each in peer.follow():
            if each.subject.startswith("orders."):
                peer.message(each.reply, status="503")
            elif "STREAM.NAMES" in each.subject:
                peer.answer(each, {"streams": ["S"], "total": 1})
            elif "STREAM.INFO" in each.subject:
                asked.append(each)

    tuned("diagnosis time", 0.3)
    asked: list[object] = []
    async with scripted(script) as connection:
        jet = connection.jetstream()
        for _ in range(2):
            requests = [(f"orders.{number}", b"x") for number in range(20)]
            failures = [
                each async for each in jet.publish_many(requests, retries=0, raise_failures=False)
            ]
            assert all(isinstance(each.error, js.NoLeader) for each in failures)
    # Two rounds of failures, or a few more if the refusals did not come in one read.
    assert 2 <= len(asked) <= 6
