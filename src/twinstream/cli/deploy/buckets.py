"""Buckets in a plan: their streams are compared, and differences are shown as bucket settings."""

from __future__ import annotations

from attrs import evolve

from twinstream.cli.deploy.step import Step
from twinstream.models import FileConfig, StreamConfig
from twinstream.models.buckets.bucket_validation import bucket_plan, kept_members


def with_kept_settings(config: FileConfig, old: StreamConfig) -> FileConfig:
    """Return a bucket's stream config, plus the settings of `old` that a bucket cannot determine.

    The update then keeps settings that other clients have changed, such as the seal of an object
    store. The configs of other streams and of consumers are returned unchanged.
    """
    bucket = config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return config
    return evolve(config, members=kept_members(bucket.kind, old, config.members))


def bucket_step(step: Step) -> Step:
    """Return a step whose plan names the settings of the bucket, not those of its stream.

    Steps of other streams and of consumers are returned unchanged.
    """
    bucket = step.config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return step
    return evolve(step, plan=bucket_plan(bucket.kind, bucket.members, step.plan))
