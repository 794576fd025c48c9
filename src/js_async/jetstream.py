"""The JetStream context: streams, consumers, publishing and more, for one domain."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, Never, TypeVar

import twinstream.models
from js_async.api.api import Api
from js_async.api.create_update import create_or_update_stream, create_stream, update_stream
from js_async.api.stream_lookup import name_by_subject
from js_async.client.transport import Transport
from js_async.consumer import Consumer, existing_consumer, made_consumer
from js_async.publish.publish import PublishedMessage
from js_async.runtime.opening import Opening, opening, opens
from js_async.stream import Stream
from twinstream.core.arguments.check_arguments import check_config, check_kind
from twinstream.core.arguments.nats_py_names import hint_attributes, takes_config, unknown_keyword
from twinstream.core.deadline import Seconds, response_seconds
from twinstream.core.publish.limits import BATCH_MESSAGES, WINDOW, WINDOW_BYTES, limits_of
from twinstream.core.publish.retry_pauses import retry_policy
from twinstream.core.read.page_limits import PAGE_BYTES, PAGE_MESSAGES
from twinstream.core.wire.subjects import ApiSubjects
from twinstream.errors import BadArgument
from twinstream.models import PubAck
from twinstream.records.headers import HeaderValues
from twinstream.records.publish_request import Publishable, PublishRequest, Rollup, Ttl

if TYPE_CHECKING:
    from js_async.api.cluster import Cluster
    from js_async.api.listing import Listing
    from js_async.consume.advisories import Events
    from js_async.kv.bucket import KeyValue
    from js_async.object_store.store import ObjectStore
    from js_async.publish.atomic_batch import AtomicBatch
    from js_async.publish.publish_many import PublishMany
    from js_async.publish.publisher import Publisher
    from js_async.publish.typed_publish import TypedPublish
    from js_async.read.range_reader import RangeReader
    from twinstream.codecs import Codec
    from twinstream.core.client.connection_events import MessagesDropped
    from twinstream.core.consume.advisories import EventKind
    from twinstream.core.kv.status import KeyValueStatus
    from twinstream.core.object_store.config import ObjectStoreStatus
    from twinstream.core.read.read_request import Via
    from twinstream.models import (
        AccountInfo,
        ConsumerConfig,
        KeyValueConfig,
        ObjectStoreConfig,
        StreamConfig,
        StreamInfo,
    )

__all__ = ["JetStream", "api_of", "range_reader"]

T = TypeVar("T")


@hint_attributes
class JetStream:
    """The JetStream API of an account or domain, created by `Connection.jetstream`.

    The `timeout` of a call is in seconds. The default is the timeout of this object. It is also the
    default for calls of the streams, consumers and messages that this object returns.

    Packages with further features are built on this object: `js_async.backup`,
    `js_async.coordination`, `js_async.counters`, `js_async.exactly_once`, `js_async.fast_ingest`,
    `js_async.groups`, `js_async.health`, `js_async.outbox`, `js_async.schedules` and
    `js_async.workers`.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        domain: str | None = None,
        prefix: str | None = None,
        timeout: Seconds | None = None,
        required_api_level: int | None = None,
    ) -> None:
        subjects = ApiSubjects.of(domain=domain, prefix=prefix)
        self._api: Final = Api(transport, subjects, timeout, required_api_level)

    def __repr__(self) -> str:
        return f"<JetStream {self.prefix} at {self._api.transport.server_info.server_name}>"

    @property
    def prefix(self) -> str:
        """The subject prefix of API requests; `$JS.API` without a domain."""
        return self._api.subjects.prefix

    @property
    def cluster(self) -> Cluster:
        """An object to administer the cluster, for users of the system account."""
        from js_async.api.cluster import Cluster

        return Cluster(self._api)

    async def account_info(self, *, timeout: Seconds | None = None) -> AccountInfo:
        """Return the account's usage and limits.

        Args:
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        subject = self._api.subjects.account_info()
        answer, deadline = twinstream.models.AccountInfoResponse, self._api.deadline(timeout)
        return await self._api.call(subject, None, answer, deadline)

    # ---- streams

    @takes_config("StreamConfig")
    async def create_stream(
        self, config: StreamConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Stream:
        """Create a stream, or return the existing one if its configuration is the same.

        Args:
            config: Configuration of the stream.
            pedantic: Let the server refuse a configuration that it would have to change (server
                2.11).
            timeout: Seconds; the default is that of this object.

        Raises:
            StreamExists: The stream exists with another configuration. The error names the
                differences.
            InvalidConfig: The server refused the configuration.
            SubjectOverlap: Another stream has one of the subjects.
            JetStreamError: The server refused for another reason.
        """
        name = _name(config)
        deadline = self._api.deadline(timeout)
        info = await create_stream(self._api, name, config, pedantic, deadline)
        return Stream(self._api, name, info)

    @takes_config("StreamConfig")
    async def update_stream(
        self, config: StreamConfig, *, pedantic: bool = False, timeout: Seconds | None = None
    ) -> Stream:
        """Replace the whole configuration of a stream. Raises `StreamNotFound`.

        The arguments are those of `create_stream`.

        Args:
            config: The settings.
            pedantic: Let the server refuse a setting that it would otherwise change (server 2.11).
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        name = _name(config)
        deadline = self._api.deadline(timeout)
        info = await update_stream(self._api, name, config, pedantic, deadline)
        return Stream(self._api, name, info)

    @takes_config("StreamConfig")
    async def create_or_update_stream(
        self, config: StreamConfig, *, timeout: Seconds | None = None
    ) -> Stream:
        """Update a stream, or create it if it does not exist.

        If other clients create, update or delete the stream at the same time, the last write wins.
        If they continue until the timeout, the call raises `StreamExists` or `RequestTimeout`.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        name, deadline = _name(config), self._api.deadline(timeout)
        info = await create_or_update_stream(self._api, name, config, deadline)
        return Stream(self._api, name, info)

    async def get_stream(self, stream_name: str, *, timeout: Seconds | None = None) -> Stream:
        """Return an existing stream. Raises `StreamNotFound`.

        Args:
            stream_name: Name of the stream.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        info = await self._api.stream_info(stream_name, self._api.deadline(timeout))
        return Stream(self._api, stream_name, info)

    def bind_stream(self, stream_name: str) -> Stream:
        """Return a handle of a stream without a request to the server.

        Use this if the user lacks the permission to request the stream's info.

        Args:
            stream_name: Name of the stream.
        """
        return Stream(self._api, stream_name, None)

    async def stream_name_by_subject(self, subject: str, *, timeout: Seconds | None = None) -> str:
        """Return the name of the only stream with a subject.

        Raises `StreamNotFound` if there is none, and `BadArgument` if a wildcard matches several.

        Args:
            subject: A subject, which may have wildcards.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await name_by_subject(self._api, subject, self._api.deadline(timeout))

    async def delete_stream(self, stream_name: str, *, timeout: Seconds | None = None) -> None:
        """Delete a stream with its messages and consumers. Raises `StreamNotFound`.

        Args:
            stream_name: Name of the stream.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        await self.bind_stream(stream_name).delete(timeout=timeout)

    def streams(
        self, subject: str | None = None, *, timeout: Seconds | None = None
    ) -> Listing[StreamInfo]:
        """Return an iterator over the infos of all streams, or of those with a subject.

        The iterator's `missing` and `offline` contain the names of streams without an info now.

        Args:
            subject: Only streams that have this subject.
            timeout: Seconds for each page; the default is that of this object.
        """
        from js_async.api import pager

        return pager.StreamInfos(self._api, subject, timeout)

    def stream_names(
        self, subject: str | None = None, *, timeout: Seconds | None = None
    ) -> Listing[str]:
        """Return an iterator over the names of all streams, or of those with a subject.

        Args:
            subject: Only streams that have this subject.
            timeout: Seconds for each page; the default is that of this object.
        """
        from js_async.api import pager

        return pager.StreamNames(self._api, subject, timeout)

    # ---- consumers

    @takes_config("ConsumerConfig")
    async def create_consumer(
        self,
        stream_name: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Create a consumer; see `Stream.create_consumer`.

        Args:
            stream_name: Name of the stream.
            config: The settings.
            pedantic: Let the server refuse a setting that it would otherwise change (server 2.11).
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await made_consumer(
            self._api, stream_name, config, "create", pedantic=pedantic, timeout=timeout
        )

    @takes_config("ConsumerConfig")
    async def create_or_update_consumer(
        self, stream_name: str, config: ConsumerConfig, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Create a consumer, or update the existing consumer with the name in `config`.

        Args:
            stream_name: Name of the stream.
            config: The settings of the consumer, with its name.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await made_consumer(self._api, stream_name, config, "", timeout=timeout)

    @takes_config("ConsumerConfig")
    async def update_consumer(
        self,
        stream_name: str,
        config: ConsumerConfig,
        *,
        pedantic: bool = False,
        timeout: Seconds | None = None,
    ) -> Consumer:
        """Update the consumer with the name in `config`. Raises `ConsumerNotFound`.

        Args:
            stream_name: Name of the stream.
            config: The new settings of the consumer, with its name.
            pedantic: Let the server refuse a setting that it would otherwise change (server 2.11).
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await made_consumer(
            self._api, stream_name, config, "update", pedantic=pedantic, timeout=timeout
        )

    async def get_consumer(
        self, stream_name: str, consumer_name: str, *, timeout: Seconds | None = None
    ) -> Consumer:
        """Return an existing consumer. Raises `ConsumerNotFound`.

        Args:
            stream_name: Name of the stream.
            consumer_name: Name of the consumer.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        return await existing_consumer(self._api, stream_name, consumer_name, timeout)

    def bind_consumer(self, stream_name: str, consumer_name: str) -> Consumer:
        """Return a handle of a consumer without a request to the server.

        Use this if the user lacks the permission to request the consumer's info.

        Args:
            stream_name: Name of the stream.
            consumer_name: Name of the consumer.
        """
        return Consumer(self._api, stream_name, consumer_name, None)

    async def delete_consumer(
        self, stream_name: str, consumer_name: str, *, timeout: Seconds | None = None
    ) -> None:
        """Delete a consumer. Raises `ConsumerNotFound`.

        Args:
            stream_name: Name of the stream.
            consumer_name: Name of the consumer.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        await Consumer(self._api, stream_name, consumer_name, None).delete(timeout=timeout)

    # ---- publishing

    def typed(self, model: type[T] | Codec[T]) -> TypedPublish[T]:
        """Return an object that publishes values of type `model` instead of bytes.

        Args:
            model: A type, for which `twinstream.codecs.codec_for` chooses the codec, or a codec.

        Raises:
            BadArgument: A part of the type cannot be encoded.
        """
        from js_async.publish.typed_publish import TypedPublish
        from twinstream.core.payloads.payloads import payloads_of

        return TypedPublish(self.publish, payloads_of(model))

    async def publish(
        self,
        subject: str,
        data: bytes = b"",
        *,
        headers: HeaderValues | None = None,
        msg_id: str | None = None,
        expected_stream: str | None = None,
        expected_last_seq: int | None = None,
        expected_last_msg_id: str | None = None,
        expected_last_subject_seq: int | None = None,
        expected_last_subject_seq_subject: str | None = None,
        rollup: Rollup | None = None,
        ttl: Ttl | None = None,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        **_unknown: Never,
    ) -> PubAck:
        """Store a message and return the stream's acknowledgement.

        If no stream stores the message, it is sent again. After a timeout or a lost connection, it
        is sent again only if a `msg_id` or an expectation prevents storing it twice.

        Args:
            subject: Subject of the message.
            data: Payload of the message.
            headers: Headers of the message.
            msg_id: Message id. Within the stream's duplicate window, a second message with the id
                is not stored; its acknowledgement has `duplicate` set and the sequence of the first
                message. Empty ids are refused, and ids with leading or trailing blanks, because
                servers remove these blanks.
            expected_stream: Store the message only in the stream of this name.
            expected_last_seq: Store the message only if this is the stream's last sequence.
            expected_last_msg_id: Store the message only if this is the id of the stream's last
                message.
            expected_last_subject_seq: Store the message only if this is the last sequence of its
                subject, or of `expected_last_subject_seq_subject`.
            expected_last_subject_seq_subject: Another subject, or a filter, for
                `expected_last_subject_seq`.
            rollup: Remove the earlier messages of the subject (`"sub"`) or stream (`"all"`).
            ttl: Time to live in whole seconds, or `"never"` to keep the message beyond the stream's
                `max_age` (server 2.11). A stream with a `subject_delete_marker_ttl` uses at least
                that time.
            timeout: Total time in seconds; the default is that of this object.
            retries: Number of repetitions if no stream stores the message. By default, there are
                two, and more until the timeout while the stream has no leader.
            retry_wait: Seconds between repetitions.

        Raises:
            NoResponders: No stream stored the message. The subclasses `NoStream`, `NoLeader` and
                `JetStreamNotEnabled` name the reason.
            JetStreamError: The server refused the message. The subclasses `WrongLastSequence`,
                `WrongLastMessageId`, `WrongStream`, `StoreFailed`, `MessageExists` and others name
                the reason.
            PermissionDenied: The user may not publish to the subject.
            BadArgument: An argument is invalid.
            RequestTimeout: No acknowledgement arrived in time. The message may be stored.
            ConnectionLost: The connection was lost before the acknowledgement arrived. The message
                may be stored.
            ConnectionClosed: The connection was closed before the acknowledgement arrived. The
                message may be stored.
            InvalidResponse: The response is invalid. The message may be stored.
            OutcomeUnknown: It could not be determined whether the message is stored.
        """
        if _unknown:
            raise unknown_keyword("JetStream.publish", _unknown)
        request = PublishRequest(
            subject,
            data,
            headers,
            msg_id,
            expected_stream,
            expected_last_seq,
            expected_last_msg_id,
            expected_last_subject_seq,
            expected_last_subject_seq_subject,
            rollup,
            ttl,
        )
        if timeout is not None:
            timeout = response_seconds(timeout, self._api.timeout)
        policy = retry_policy(retries, retry_wait)
        return await PublishedMessage(self._api, request, policy, timeout).acknowledged()

    def publish_many(
        self,
        requests: Iterable[Publishable] | AsyncIterable[Publishable],
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
    ) -> PublishMany:
        """Return an iterator that publishes messages and yields their outcomes in order.

        The iterator sends further messages before earlier ones are acknowledged. An outcome is
        the acknowledgement, or a `PublishFailure` with the error. Messages are sent again as by
        `publish`, which may change their order.

        If the caller does not read the `error` of a failure, `PublishFailures` is raised at the end
        of the `with` block, by `close`, or else at the end of the iteration.

        Args:
            requests: Messages: `PublishRequest` objects, or pairs of subject and data.
            window: Maximum number of messages in flight.
            window_bytes: Maximum number of bytes in flight.
            timeout: Seconds for each message.
            retries: As in `publish`.
            retry_wait: As in `publish`.
            raise_failures: Raise `PublishFailures`. Otherwise the caller must check the outcomes.
        """
        from js_async.publish.pipeline import Pipeline
        from js_async.publish.publish_many import PublishMany

        limits = limits_of(self._api.timeout, window, timeout, window_bytes, retries, retry_wait)
        pipeline = Pipeline(self._api, limits, name="publish_many")
        return PublishMany(pipeline, requests, raise_failures)

    def publisher(
        self,
        *,
        window: int = WINDOW,
        window_bytes: int = WINDOW_BYTES,
        timeout: Seconds | None = None,
        retries: int | None = None,
        retry_wait: Seconds = 0.25,
        raise_failures: bool = True,
        **_unknown: Never,
    ) -> Publisher:
        """Return a publisher, which sends messages without waiting for each acknowledgement.

        The publisher waits only while `window` or `window_bytes` is used up, or the client is not
        connected. The arguments are those of `publish_many`.

        Args:
            window: Maximum number of messages in flight.
            window_bytes: Maximum number of bytes in flight.
            timeout: Seconds for each message; the default is that of the JetStream context.
            retries: As in `publish`.
            retry_wait: As in `publish`.
            raise_failures: Whether the end raises `PublishFailures` for errors that the program has
                not read.
        """
        if _unknown:
            raise unknown_keyword("JetStream.publisher", _unknown)
        from js_async.publish.publisher import Publisher

        limits = limits_of(self._api.timeout, window, timeout, window_bytes, retries, retry_wait)
        return Publisher(self._api, limits, raise_failures)

    def atomic_batch(
        self,
        *,
        id: str | None = None,
        max_messages: int = BATCH_MESSAGES,
        timeout: Seconds | None = None,
    ) -> AtomicBatch:
        """Return a batch of messages that are stored all together or not at all (server 2.12).

        Use it in a `with` block.

        Args:
            id: Batch id. The default is a unique one.
            max_messages: Maximum number of messages. The server's default limit is 1000.
            timeout: Seconds for each response.
        """
        from js_async.publish.atomic_batch import AtomicBatch

        return AtomicBatch(self._api, id, max_messages, timeout)

    # ---- key-value buckets

    @takes_config("KeyValueConfig")
    async def create_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Create a bucket, or return the existing one if its settings are equal.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            BucketExists: The bucket exists with other settings. The error names the differences.
                Settings that only its stream has do not count.
            NotABucket: The stream of that name exists and is not a bucket.
            InvalidConfig: The server refused the settings.
            BadArgument: A setting is invalid.
            Unsupported: `limit_marker_ttl` is set, and the server is older than 2.11.
        """
        from js_async.kv.bucket import handle
        from js_async.kv.manage import create_bucket

        return handle(await create_bucket(self._api, config, self._api.deadline(timeout)))

    @takes_config("KeyValueConfig")
    async def update_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Replace all settings of a bucket, and keep all other settings of its stream.

        Settings that `config` omits get their defaults; `KeyValue.change` changes single settings.
        The storage cannot be changed. After a `limit_marker_ttl` was set, keys can always have a
        TTL. A mirror stays a mirror, unless `KeyValue.change` sets `mirror` to None.

        Args:
            config: The new settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            BucketNotFound: The bucket does not exist.
            NotABucket: The stream of that name is not a bucket.
            BadArgument: A setting is invalid.
            InvalidConfig: The server does not support a change, for example of the storage.
        """
        from js_async.kv.bucket import handle
        from js_async.kv.manage import update_bucket

        return handle(await update_bucket(self._api, config, self._api.deadline(timeout)))

    @takes_config("KeyValueConfig")
    async def create_or_update_key_value(
        self, config: KeyValueConfig, *, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Create a bucket, or replace the settings of an existing one (see `update_key_value`).

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.kv.bucket import handle
        from js_async.kv.manage import create_or_update_bucket

        return handle(await create_or_update_bucket(self._api, config, self._api.deadline(timeout)))

    async def get_key_value(
        self, bucket: str, *, validate_keys: bool = True, timeout: Seconds | None = None
    ) -> KeyValue[bytes]:
        """Return an existing bucket. Raises `BucketNotFound` or `NotABucket`.

        With `validate_keys=False`, writes accept any subject without wildcards as a key, such as
        `user:1`. Other clients may refuse to read such keys.

        Args:
            bucket: Name of the bucket.
            validate_keys: Whether writes refuse keys that other clients may not read.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.kv.bucket import handle
        from js_async.kv.manage import get_bucket

        place = await get_bucket(self._api, bucket, self._api.deadline(timeout))
        return handle(place, validate_keys=validate_keys)

    def bind_key_value(self, bucket: str, *, validate_keys: bool = True) -> KeyValue[bytes]:
        """Return a handle of a bucket without a request to the server.

        Use this if the user lacks the permission to request the info of the bucket's stream. The
        bucket must not be a mirror, and reads use the leader. Some calls need the settings of the
        bucket and request them: `create`, `update`, calls with a TTL, and `delete` and `purge` with
        a `revision`. `validate_keys` is as in `get_key_value`.

        Args:
            bucket: Name of the bucket.
            validate_keys: As in `get_key_value`.
        """
        from js_async.kv.bucket import handle
        from js_async.kv.bucket_streams import BucketStreams

        return handle(BucketStreams(self._api, bucket, None), validate_keys=validate_keys)

    async def delete_key_value(self, bucket: str, *, timeout: Seconds | None = None) -> None:
        """Delete a bucket with all its keys. Raises `BucketNotFound`.

        Args:
            bucket: Name of the bucket.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.kv.manage import delete_bucket

        await delete_bucket(self._api, bucket, timeout)

    def key_values(self, *, timeout: Seconds | None = None) -> Listing[KeyValueStatus]:
        """Return an iterator over the statuses of all buckets, including mirrors.

        Args:
            timeout: Seconds for each page of the list; the default is that of this object.
        """
        from js_async.kv.manage import Buckets

        return Buckets(self._api, timeout)

    def key_value_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Return an iterator over the names of all buckets, including mirrors.

        Args:
            timeout: Seconds for each page of the list; the default is that of this object.
        """
        from js_async.api.streams_of_kind import NamesOfKind
        from js_async.kv.manage import Buckets

        return NamesOfKind(Buckets(self._api, timeout))

    # ---- object stores

    @takes_config("ObjectStoreConfig")
    async def create_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Create an object store, or return the existing one if its settings are equal.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.

        Raises:
            BucketExists: The object store exists with other settings. The error names the
                differences.
            NotABucket: The stream of that name exists and is not an object store.
            InvalidConfig: The server refused the settings.
            JetStreamError: The server refused the request for another reason.
        """
        from js_async.object_store import stores

        return await stores.create(self._api, config, self._api.deadline(timeout))

    async def get_object_store(self, bucket: str, *, timeout: Seconds | None = None) -> ObjectStore:
        """Return an existing object store, which another client may have created.

        Raises `BucketNotFound` or `NotABucket`.

        Args:
            bucket: Name of the bucket.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.object_store import stores

        return await stores.get(self._api, bucket, self._api.deadline(timeout))

    def bind_object_store(self, bucket: str) -> ObjectStore:
        """Return a handle of an object store without a request to the server.

        Later calls request the info of its stream if necessary.

        Args:
            bucket: Name of the bucket.
        """
        from js_async.object_store.store import ObjectStore

        return ObjectStore(self._api, bucket, None)

    @takes_config("ObjectStoreConfig")
    async def update_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Replace the settings of an object store, and keep all other settings of its stream.

        Args:
            config: New settings.
            timeout: Seconds for both requests together; the default is that of this object.

        Raises:
            BucketNotFound: The object store does not exist.
            NotABucket: The stream of this name is not an object store.
            InvalidConfig: The server rejected the new configuration.
            JetStreamError: The server refused the request for another reason.
        """
        from js_async.object_store import stores

        return await stores.update(self._api, config, self._api.deadline(timeout))

    @takes_config("ObjectStoreConfig")
    async def create_or_update_object_store(
        self, config: ObjectStoreConfig, *, timeout: Seconds | None = None
    ) -> ObjectStore:
        """Create an object store, or replace the settings of an existing one.

        Args:
            config: The settings.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.object_store import stores

        return await stores.create_or_update(self._api, config, self._api.deadline(timeout))

    async def delete_object_store(self, bucket: str, *, timeout: Seconds | None = None) -> None:
        """Delete an object store with all its objects. Raises `BucketNotFound`.

        Args:
            bucket: Name of the bucket.
            timeout: Seconds for the whole call; the default is that of the JetStream context.
        """
        from js_async.object_store import stores

        await stores.delete(self._api, bucket, timeout)

    def object_stores(self, *, timeout: Seconds | None = None) -> Listing[ObjectStoreStatus]:
        """Return an iterator over the statuses of all object stores, including mirrors.

        The iterator lists all streams and selects the object stores.

        Args:
            timeout: Seconds for each page of the list; the default is that of this object.
        """
        from js_async.object_store import stores

        return stores.Statuses(self._api, timeout)

    def object_store_names(self, *, timeout: Seconds | None = None) -> Listing[str]:
        """Return an iterator over the names of all object stores.

        The iterator lists the infos of all streams and selects object stores.

        Args:
            timeout: Seconds for each page of the list; the default is that of this object.
        """
        from js_async.api.streams_of_kind import NamesOfKind
        from js_async.object_store import stores

        return NamesOfKind(stores.Statuses(self._api, timeout))

    # ---- events

    @opens
    def events(
        self,
        *,
        stream_name: str | None = None,
        consumer_name: str | None = None,
        kinds: Iterable[EventKind] | None = None,
        max_buffered: int = 65_536,
        on_drop: Callable[[MessagesDropped], None] | None = None,
    ) -> Opening[Events]:
        """Return an iterator over the advisories and metrics from now on. Close it when done.

        Args:
            stream_name: Only events of this stream.
            consumer_name: Only events of this consumer.
            kinds: Only these kinds: classes of `twinstream.models` such as `MaxDeliver`, or strings
                such as "max_deliver". The default is all, an empty list is none.
            max_buffered: Number of events to buffer. Further events are dropped. The next event
                shows how many were dropped, and `on_drop` is called.
            on_drop: Callback for dropped events.
        """
        from js_async.consume.advisories import listen
        from twinstream.core.consume.advisories import event_subjects

        subjects = event_subjects(stream_name, consumer_name, kinds)
        return opening(listen(self._api.transport, subjects, max_buffered, on_drop))


def _name(config: StreamConfig) -> str:
    check_config(config, twinstream.models.StreamConfig)
    if not config.name:
        raise BadArgument("the stream configuration has no name")
    return config.name


def api_of(jet: JetStream) -> Api:
    """Return the API of a `JetStream`, for a package that sends requests of its own.

    Raises `BadArgument` for another object, for example a connection.
    """
    check_kind(jet, JetStream, "jet", "a JetStream, as nc.jetstream() returns it")
    return jet._api


def range_reader(
    jet: JetStream,
    stream_name: str,
    start: int,
    end: int,
    *,
    filter_subjects: Sequence[str] = (),
    direct: bool = True,
    idle_timeout: float = 120.0,
    page_messages: int = PAGE_MESSAGES,
    page_bytes: int = PAGE_BYTES,
    ahead: bool = False,
    bulk: bool = False,
) -> RangeReader:
    """Return a reader of the messages from sequence `start` to `end` (exclusive).

    The reader returns pages with the undecoded parts of messages. The result is complete even
    if replicas lag. The reader sends nothing before the first page is requested.

    Args:
        jet: The context.
        stream_name: Name of the stream.
        start: First sequence.
        end: Sequence to stop at (exclusive).
        filter_subjects: Subject filters. The default matches all.
        direct: Read by direct gets, which need `allow_direct` of the stream (server 2.11).
            Otherwise the reader uses an ephemeral consumer, which work-queue streams refuse.
        idle_timeout: Seconds without progress after which the read fails.
        page_messages: Maximum number of messages of a page.
        page_bytes: Approximate maximum number of bytes of a page.
        ahead: Request the next page before returning a page.
        bulk: Return pages as Arrow arrays (`ArrowPage.of`), which takes a fraction of the time.
            Needs pyarrow. While a page arrives, the connection processes no other data.
    """
    from js_async.read.stream_range import open_range
    from twinstream.core.read.range_read import RangeRead

    read = RangeRead(start, end, page_messages=page_messages, page_bytes=page_bytes)
    via: Via = "direct" if direct else "consumer"
    return open_range(
        api_of(jet),
        stream_name,
        read,
        via,
        filter_subjects,
        timeout=idle_timeout,
        ahead=ahead,
        bulk=bulk,
    )
