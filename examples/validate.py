"""Check configurations without a server, as a test of a program would.

    python examples/validate.py

The first error of each configuration is the one that the server would return.

It prints:

    stream: duplicate_window: duplicate_window is longer than max_age.
    consumer: ack_wait: expected a whole number of nanoseconds, got '30s'. Write 30000000000.
    consumer: max_delivery: there is no such setting. Did you mean 'max_deliver'?
    correct: True
    warning: max_bytes: nothing limits the stream, so that it grows until the disk is full.
    duplicates are found for 0:02:00
    plan: update ['max_msgs']
    loss: Lowering max_msgs removes messages beyond the newest 1000.
    with its stream: a workqueue stream needs ack policy explicit.
"""

from __future__ import annotations

from datetime import timedelta

from twinstream.models import (
    ConsumerConfig,
    StreamConfig,
    effective_stream,
    lint_stream,
    plan_stream,
    validate_consumer,
    validate_stream,
)


def main() -> None:
    """Check a stream, its consumer, and a change of the stream."""
    orders = StreamConfig(
        name="ORDERS",
        subjects=["orders.>"],
        max_age=timedelta(minutes=1),
        duplicate_window=timedelta(minutes=5),
    )
    for problem in validate_stream(orders):
        print(f"stream: {problem.path}: {problem.message}")

    # What a program reads from a file may be a `dict`, or text of JSON.
    packer = {"durable_name": "packer", "ack_wait": "30s", "max_delivery": 5}
    for problem in validate_consumer(packer):
        print(f"consumer: {problem.path}: {problem.message} {problem.hint}")

    correct = StreamConfig(name="ORDERS", subjects=["orders.>"])
    print("correct:", not validate_stream(correct))
    for warning in lint_stream(correct):
        print(f"warning: {warning.path}: {warning.message}")
    # The configuration as a server would store it, with its defaults.
    print("duplicates are found for", effective_stream(correct).duplicate_window)

    plan = plan_stream(correct, {"name": "ORDERS", "subjects": ["orders.>"], "max_msgs": 1000})
    print("plan:", plan.action, [change.path for change in plan.changes])
    for loss in plan.losses:
        print("loss:", loss)
    # Whether a consumer fits its stream is known without a server, too.
    queue = StreamConfig(name="ORDERS", subjects=["orders.>"], retention="workqueue")
    unacknowledged = ConsumerConfig(durable_name="packer", ack_policy="none")
    print("with its stream:", validate_consumer(unacknowledged, queue)[-1].message)


if __name__ == "__main__":
    main()
