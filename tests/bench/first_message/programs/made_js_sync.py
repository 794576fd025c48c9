"""Create a stream and a consumer, then publish, fetch and acknowledge one message, blocking."""

import sys

import js_sync
from twinstream.models import ConsumerConfig, StreamConfig

url, stream, subject, name = sys.argv[1:]

with js_sync.connect(url) as nc:
    jet = nc.jetstream()
    created = jet.create_stream(StreamConfig(name=stream, subjects=[subject]))
    consumer = created.create_consumer(ConsumerConfig(durable_name=name, ack_policy="explicit"))
    jet.publish(subject, b"first")
    for message in consumer.fetch(1, timeout=5):
        message.ack()
