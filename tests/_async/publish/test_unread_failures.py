"""Failures of bulk writers that the program did not read: none is silently ignored."""

from __future__ import annotations

import gc
import warnings
from functools import partial

import pytest

import js_async as js
from js_async.fast_ingest import FastIngest
from tests._async.flow import ended, eventually
from tests.inside import api_of
from twinstream.models import StreamConfig

WRITERS = ["publish_many", pytest.param("FastIngest", marks=pytest.mark.since("2.14"))]
UNREAD = "2 messages were not acknowledged: .*wrong last sequence"


def let_go(holder):
    """Clear a list, so that its contents are no longer referenced."""
    holder.clear()
    gc.collect()


async def through(outcomes, taken, error=None):
    """Iterate over outcomes in a block without reading them."""
    async with outcomes:
        async for outcome in outcomes:
            taken.append(outcome)
        if error is not None:
            raise error


async def writer(jet, name, call):
    """Return a writer of three messages, of which the stream refuses the last two."""
    batched = call == "FastIngest" or None
    await jet.create_stream(StreamConfig(name=name, subjects=[name], allow_batched=batched))
    refused = js.PublishRequest(name, expected_last_seq=10**6)
    many = jet.publish_many if call == "publish_many" else partial(FastIngest, jet, name)
    return partial(many, [js.PublishRequest(name), refused, refused], retries=0)


@pytest.mark.parametrize("call", WRITERS)
async def test_counting_outcomes_does_not_make_failures_pass(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        outcomes, taken = write(), []
        with pytest.raises(js.PublishFailures, match=UNREAD) as caught:
            await through(outcomes, taken)
        assert (len(taken), caught.value.count, len(caught.value.failures)) == (3, 2, 2)
        # It is raised once.
        await outcomes.close()


@pytest.mark.parametrize("call", WRITERS)
async def test_without_a_block_the_end_of_the_iteration_raises(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        taken = []

        async def run():
            async for outcome in write():
                taken.append(outcome)

        with pytest.raises(js.PublishFailures, match=UNREAD):
            await run()
        assert len(taken) == 3


@pytest.mark.parametrize("call", WRITERS)
async def test_read_failures_are_not_raised(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        async with write() as outcomes:
            # Kept first, looked at later: that is enough within the block.
            kept = [each async for each in outcomes]
            errors = [each.error for each in kept if isinstance(each, js.PublishFailure)]
        assert [type(error) for error in errors] == [js.WrongLastSequence] * 2
        kept = [each async for each in write(raise_failures=False)]
        assert [type(each.error) for each in kept[1:]] == [js.WrongLastSequence] * 2


@pytest.mark.parametrize("call", WRITERS)
async def test_unread_failure_is_raised_next_to_a_read_one(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        taken = []

        async def look_at_the_last():
            async with write() as outcomes:
                async for outcome in outcomes:
                    taken.append(outcome)
                assert isinstance(taken[-1].error, js.WrongLastSequence)

        with pytest.raises(js.PublishFailures, match="1 message was") as caught:
            await look_at_the_last()
        [failure] = caught.value.failures
        assert failure is taken[1]


@pytest.mark.parametrize("call", WRITERS)
async def test_failures_become_a_note_of_an_error_that_is_being_raised(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        with pytest.raises(LookupError) as caught:
            await through(write(), [], LookupError())
        assert [note[:10] for note in caught.value.__notes__] == ["2 messages"]


@pytest.mark.parametrize("call", WRITERS)
async def test_an_exit_of_the_program_prints_no_notes_so_there_is_a_warning(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        with (
            pytest.warns(RuntimeWarning, match=f"{call} ended with failures .*{UNREAD}"),
            pytest.raises(SystemExit),
        ):
            await through(write(), [], SystemExit())


@pytest.mark.parametrize("call", WRITERS)
async def test_failures_of_an_iteration_that_was_left_and_dropped_are_a_warning(opened, name, call):
    async with opened() as jet:
        write = await writer(jet, name, call)
        outcomes = write()
        async for outcome in outcomes:
            if isinstance(outcome, js.PublishFailure):
                break
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            await ended(outcomes)
        [text] = [str(each.message) for each in caught if each.category is RuntimeWarning]
        assert text.startswith(f"{call} ended with failures that were not read")


async def test_a_source_that_fails_carries_the_failures_before_it(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))

        async def source():
            yield (name, b"x")
            yield ("bad subject", b"x")
            raise LookupError

        with (
            pytest.warns(ResourceWarning, match="publish_many was left"),
            pytest.raises(LookupError) as caught,
        ):
            async for _ in jet.publish_many(source()):
                pass
        assert any("bad subject" in note for note in caught.value.__notes__)


async def test_dropped_publisher_warns_of_its_failures(opened, name):
    async with opened() as jet:
        await jet.create_stream(StreamConfig(name=name, subjects=[name]))
        publisher = jet.publisher(retries=0)
        await publisher.send(name, expected_last_seq=7)
        await publisher.flush()
        holder = [publisher]
        del publisher
        with (
            pytest.warns(RuntimeWarning, match="publisher ended with failures .*1 message was"),
            pytest.warns(ResourceWarning, match="dropped without close, with 0 messages"),
        ):
            let_go(holder)


class Inboxes:
    """A transport that counts the subscriptions made through it."""

    def __init__(self, transport):
        self._transport = transport
        self.open = []

    def __getattr__(self, name):
        return getattr(self._transport, name)

    async def open_mailbox(self, *args, **options):
        box = await self._transport.open_mailbox(*args, **options)
        self.open.append(box)
        return box

    async def close_mailbox(self, *boxes, **options):
        await self._transport.close_mailbox(*boxes, **options)
        for box in boxes:
            self.open.remove(box)


async def test_a_publisher_that_is_dropped_warns_of_what_fails_later(opened, name):
    async with opened() as own:
        await own.create_stream(StreamConfig(name=name, subjects=[name]))
        inboxes = Inboxes(api_of(own).transport)
        publisher = js.JetStream(inboxes, timeout=20).publisher(retries=1, retry_wait=0.2)
        await publisher.send(f"{name}.nobody")
        assert inboxes.open
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            del publisher
            gc.collect()

            async def warned():
                return any(each.category is RuntimeWarning for each in caught)

            await eventually(warned)
        kinds = [each.category for each in caught]
        assert kinds == [ResourceWarning, RuntimeWarning]
        assert "no stream has this subject" in str(caught[1].message)

        async def none_open():
            return not inboxes.open

        # Its subscription is gone.
        await eventually(none_open)


async def test_publisher_with_raise_failures_off_does_not_raise(opened, name):
    async with opened() as jet:
        async with jet.publisher(retries=0, raise_failures=False) as publisher:
            handle = await publisher.send(f"{name}.nobody")
        with pytest.raises(js.NoStream):
            await handle.result()


async def test_on_call_does_not_look_at_failures_for_the_program(server, name):
    calls = []
    async with js.connect(server.url, on_call=calls.append) as connection:
        jet = connection.jetstream()

        async def publish():
            async with jet.publisher(retries=0) as publisher:
                await publisher.send(f"{name}.nobody")

        with pytest.raises(js.PublishFailures, match="1 message was"):
            await publish()
        with pytest.raises(js.PublishFailures, match="1 message was"):
            await through(jet.publish_many([(f"{name}.nobody", b"")], retries=0), [])
    assert sum(isinstance(call.error, js.NoStream) for call in calls) == 2


@pytest.mark.since("2.12")
async def test_warning_for_a_dropped_atomic_batch_says_it_is_not_stored(opened, name):
    async with opened() as jet:
        stream = await jet.create_stream(
            StreamConfig(name=name, subjects=[name], allow_atomic=True)
        )
        batch = jet.atomic_batch()
        await batch.add(name, b"x")
        holder = [batch]
        del batch
        with pytest.warns(RuntimeWarning, match="dropped without commit, none of its 1 messages"):
            let_go(holder)
        assert (await stream.info()).state.messages == 0
        # Nothing was lost with these.
        jet.atomic_batch()
        left = jet.atomic_batch()
        await left.add(name, b"x")
        await left.abandon()
        del left
        gc.collect()
