"""Proxies before servers that speak S3, in a process of their own.

deltalake holds Python's lock while it changes properties of a table. A proxy in the process of a
command that does so could not answer.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from typing import Final

from tests.s3_proxy import Fault, S3Proxy, S3Request

__all__ = ["proxy_process"]

# Seconds for the start and the end of the process.
_BUSY: Final = 60.0


@contextmanager
def proxy_process(
    urls: Sequence[str], fault: Callable[[S3Request], Fault], patience: float
) -> Generator[list[str]]:
    """Yield the addresses of proxies before servers, in their order.

    `fault` gets a copy in the process, so it must be picklable.
    """
    spawn = multiprocessing.get_context("spawn")
    own, theirs = spawn.Pipe()
    process = spawn.Process(target=_serve, args=(urls, fault, patience, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        assert own.poll(_BUSY)
        yield own.recv()
    finally:
        own.close()
        process.join(_BUSY)
    assert process.exitcode == 0


def _serve(
    urls: Sequence[str],
    fault: Callable[[S3Request], Fault],
    patience: float,
    connection: Connection,
) -> None:
    with ExitStack() as stack:
        proxies = [stack.enter_context(S3Proxy(url, fault, patience)) for url in urls]
        connection.send([each.url for each in proxies])
        try:
            connection.recv()  # until the other end is closed
        except EOFError:
            pass
