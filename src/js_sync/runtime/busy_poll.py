"""Sockets for busy polling, whose calls keep the GIL, and a function that yields the CPU.

Python releases the GIL around each socket call, even a non-blocking one. A thread that computes can
take the GIL then and keep it for 5 ms. With these sockets, half of the requests took less than 0.2
ms instead of 5.6 while another thread computed, and 0.5 ms on average instead of 7.
"""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Iterable
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["KeepingSocket", "give_way"]

# Functions of `PyDLL` keep the GIL; those of `CDLL` release it.
_C: Final = ctypes.PyDLL(None, use_errno=True)
_send: Final = _C.send
_send.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int)
_send.restype = ctypes.c_ssize_t
_recv: Final = _C.recv
_recv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
_recv.restype = ctypes.c_ssize_t

give_way: Final = _C.sched_yield
"""Yield the CPU to another process that is ready to run, if there is one.

The system tends to wake up a server on the CPU of the process that wrote to it. While this process
busy-polls for the response, the server has to wait for milliseconds. The 99th percentile of the
duration of requests, sent at intervals of 3 ms, was 4.9 ms. With this function it is 0.4 ms.
"""
give_way.argtypes = ()

_SIZE: Final = 1 << 16


class KeepingSocket(socket.socket):
    """A connected, non-blocking socket that keeps the GIL in `send` and `recv`."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(fileno=sock.detach())
        self.setblocking(False)
        # The lock prevents a close during a call: the system may reuse a closed descriptor at once.
        self._within: Final = Lock()
        self._buffer: Final = memoryview(bytearray(_SIZE))
        self._address: Final = ctypes.addressof(ctypes.c_char.from_buffer(self._buffer))

    def send(self, data: Buffer, flags: int = 0) -> int:
        """Send as much data as the system accepts; return the number of bytes. Raises OSError."""
        data = bytes(data)
        with self._within:
            sent: int = _send(self.fileno(), data, len(data), flags)
        return _checked(sent)

    def sendmsg(self, buffers: Iterable[Buffer], *rest: Any) -> int:
        """Send data and return the number of sent bytes.

        Only one piece of at most 64 KiB is sent with the GIL, as by `send`.
        """
        pieces = list(buffers)
        if rest or len(pieces) != 1 or memoryview(pieces[0]).nbytes > _SIZE:
            return super().sendmsg(pieces, *rest)
        return self.send(pieces[0])

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        """Return available bytes, at most `bufsize` or 64 KiB. Raises OSError."""
        with self._within:
            got: int = _recv(self.fileno(), self._address, min(bufsize, _SIZE), flags)
            return bytes(self._buffer[: _checked(got)])

    def close(self) -> None:
        """Close the socket when no other thread is within a call."""
        with self._within:
            super().close()


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
