"""What goes wrong at the requests of a driver, as functions for `S3Proxy`."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final

from attrs import frozen

from tests.s3_proxy import Fault, S3Proxy, S3Request
from tests.s3_server import S3Server

__all__ = [
    "NONE",
    "Failure",
    "cut_off",
    "failures_of",
    "misleading",
    "request_limit",
    "two_proxies",
    "wrong_answer",
]

# Answers to writes that were carried out, and how many of these writes get one.
_WRONG: Final[list[Fault]] = ["409", "412", "500", "503", "time-out", "closed"]
_SHARE: Final = 0.2


def request_limit(fault: Fault = "") -> float:
    """Return the seconds until a request of a driver with a fault counts as failed.

    The limit is short only where an answer does not come, because a busy machine may be late.
    """
    return 1.0 if fault == "time-out" else 60.0


@contextmanager
def two_proxies(
    s3: S3Server, fault: Callable[[S3Request], Fault]
) -> Generator[tuple[S3Proxy, S3Proxy]]:
    """Yield a proxy before the store and one before the catalog."""
    with (
        S3Proxy(s3.url, fault, patience=1.5) as store,
        S3Proxy(s3.catalog_url, fault, patience=1.5) as catalog,
    ):
        yield store, catalog


@frozen
class Failure:
    """What goes wrong in a run: a function for `S3Proxy`, and the fault that it has."""

    answer: Callable[[S3Request], Fault]
    fault: Fault


NONE: Final = Failure(lambda _: "", "")
"""Nothing goes wrong."""


def failures_of(wrong: Sequence[Fault], *proxies: S3Proxy) -> list[Failure]:
    """Return what may go wrong in a run whose requests some proxies have counted.

    The driver dies at any request, or gets an answer of `wrong` to a write that was carried out.
    """
    count = sum(len(each.requests) for each in proxies)
    writes = sum(each.counts()[method] for each in proxies for method in ("PUT", "POST"))
    ends: list[Fault] = ["closed", "expired"]
    return [
        *(Failure(cut_off(at, each), each) for each in ends for at in range(count)),
        *(Failure(wrong_answer(at, each), each) for each in wrong for at in range(writes)),
    ]


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
        return fault if is_now and _may_get(request, fault) else ""

    return answer


def misleading(request: S3Request) -> Fault:
    """Answer some writes of a command, which were carried out, wrongly."""
    if request.method not in ("PUT", "POST") or random.random() > _SHARE:
        return ""
    fault = random.choice(_WRONG)
    return fault if _may_get(request, fault) else ""


def _may_get(request: S3Request, fault: Fault) -> bool:
    """Return whether a server may answer a write so."""
    if fault == "412":
        return not {"if-match", "if-none-match"}.isdisjoint(request.headers)
    return fault != "409" or request.method == "POST"
