"""Buckets in a plan: compare their streams, and show differences as settings of the bucket."""

from __future__ import annotations

from attrs import evolve

from twinstream.cli.deploy.step import Step
from twinstream.models import FileConfig, StreamConfig
from twinstream.models.buckets.judging import bucket_plan, kept_members


def with_kept_settings(config: FileConfig, old: StreamConfig) -> FileConfig:
    """Keep the stream settings that a bucket does not have; return other configurations unchanged.

    So an update never resets what another client or tool has set, such as the seal of an object
    store.
    """
    bucket = config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return config
    return evolve(config, members=kept_members(bucket.kind, old, config.members))


def bucket_step(step: Step) -> Step:
    """Express a bucket's changes and problems in settings of the bucket, not of its stream."""
    bucket = step.config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return step
    return evolve(step, plan=bucket_plan(bucket.kind, bucket.members, step.plan))
