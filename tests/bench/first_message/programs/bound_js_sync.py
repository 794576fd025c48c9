"""Publish, fetch and acknowledge one message, blocking."""

import sys

import js_sync

url, stream, subject, name = sys.argv[1:]

with js_sync.connect(url) as nc:
    jet = nc.jetstream()
    jet.publish(subject, b"first")
    for message in jet.bind_consumer(stream, name).fetch(1, timeout=5):
        message.ack()
