"""What goes wrong at the requests of a driver, as functions for `S3Proxy`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tests.s3_proxy import Fault, S3Request

__all__ = ["cut_off", "wrong_answer"]


def cut_off(after: int, fault: Fault) -> Callable[[S3Request], Fault]:
    """Return what happens to requests: some are answered, one has the fault, the rest is refused.

    That is how the server sees a driver that dies. It may have carried out its last request.
    """
    seen = 0
    lock = threading.Lock()

    def answer(_: S3Request) -> Fault:
        nonlocal seen
        with lock:
            seen += 1
            if seen <= after:
                return ""
            return fault if seen == after + 1 else "expired"

    return answer


def wrong_answer(at: int, fault: Fault) -> Callable[[S3Request], Fault]:
    """Return what happens to requests: one write, with this number, gets a wrong answer.

    A server answers 412 only to a conditional PUT, and a catalog 409 only to a POST.
    """
    seen, lock = 0, threading.Lock()

    def answer(request: S3Request) -> Fault:
        nonlocal seen
        if request.method not in ("PUT", "POST"):
            return ""
        with lock:
            seen += 1
            is_now = seen == at + 1
        possible = {"412": "if-none-match" in request.headers, "409": request.method == "POST"}
        return fault if is_now and possible.get(fault, True) else ""

    return answer
