"""Buckets in a plan: their streams are compared, and shown in the words of the bucket."""

from __future__ import annotations

from attrs import evolve

from twinstream.cli.deploy.step import Step
from twinstream.models import FileConfig, StreamConfig
from twinstream.models.buckets.judging import bucket_plan, kept_members


def with_kept_settings(config: FileConfig, old: StreamConfig) -> FileConfig:
    """Return the stream of a bucket with what the bucket has no setting for as it is; others as is.

    So an update never resets what another client or tool set, such as the seal of an object store.
    """
    bucket = config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return config
    return evolve(config, members=kept_members(bucket.kind, old, config.members))


def bucket_step(step: Step) -> Step:
    """Return a step with the changes and problems at the settings of the bucket; others as is."""
    bucket = step.config.bucket
    if bucket is None or bucket.kind == "stream" or bucket.kind == "consumer":
        return step
    return evolve(step, plan=bucket_plan(bucket.kind, bucket.members, step.plan))
