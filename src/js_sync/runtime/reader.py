"""The reading half of a `Link` of the blocking twin. One thread at a time reads the connection.

One of the waiting threads, the leader, reads for all of them. The other threads sleep until their
flag is set, or until they have to become the leader. A background thread, the keeper, reads while
no thread waits.
"""

from __future__ import annotations

import select
import time
from collections import deque
from collections.abc import Callable
from threading import Lock, get_ident
from typing import Final

from js_sync.runtime.concurrency import LONGEST, Gate, Signal, Waker, open_gate
from js_sync.runtime.sender import CUT_SHORT, Sender
from js_sync.runtime.sockets import Wire, has_bytes
from twinstream.core.deadline import Deadline, monotonic
from twinstream.core.hooks import HOOKS, reached

__all__ = ["GLANCE", "Reader"]

# The size of a read (bytes). It is below the size from which the allocator maps memory. With mapped
# memory, each recv() would cost a page fault.
_READ_SIZE: Final = 1 << 16
# Maximum reads before a timeout is reported, for a peer that sends without a pause.
_LAST_READS: Final = 256
# Maximum time for the last reads (seconds). It limits the delay if the data takes long to process,
# or if another thread is the reader but gets no CPU time.
_LAST_WAIT: Final = 0.1
# Maximum time to wait until the reading thread has handled the end of the stream (seconds).
_NOTICE_WAIT: Final = 0.1
GLANCE: Final = 0.0005
"""Pause between two checks of the state of another thread (seconds)."""


class Reader(Sender):
    """The reading half of a `Link`.

    `on_bytes` is called with received data; its result is ignored.
    """

    def __init__(self, on_bytes: Callable[[bytes], int]) -> None:
        super().__init__()
        self._on_bytes: Final = on_bytes
        self._poll = select.poll()
        self._waker: Final = Waker()
        # Protects `_reader`, `_reader_yields` and `_sleepers`. No thread holds it during I/O.
        self._mutex: Final = Lock()
        # The id of the reading thread, or 0.
        self._reader = 0
        # Whether the reading thread is the keeper, which stops reading when another thread waits.
        self._reader_yields = False
        self._sleepers: deque[Lock] = deque()
        self._reads = 0
        # Whether the keeper sends buffered data, instead of reading.
        self._lingering = False

    def _receive(self, sock: Wire) -> None:
        """Read once, and process the data. An error, or the end of the stream, ends the socket."""
        try:
            try:
                data = sock.recv(_READ_SIZE)
            except BlockingIOError:
                return
            except OSError as error:
                self._drop(sock, error)
                return
            if not data:
                self._drop(sock, None)
                return
            self._reads += 1
            try:
                if HOOKS:
                    reached("link: received", data)
                self._on_bytes(data)
            except Exception as error:
                self._drop(sock, error)
        except BaseException:
            # An interrupt, because the code above handles each `Exception`. The received data may
            # be lost or half processed.
            self._drop(sock, CUT_SHORT)
            raise

    def _lead(self, signal: Signal, deadline: Deadline) -> None:
        """Be the leader: read for all threads until `signal` is set or the deadline has passed.

        The method also returns when the socket has ended.
        """
        waker = self._waker
        waker.busy = False
        signal.sleepers.append(waker)
        try:
            while not signal.raised:
                sock, left = self._socket, deadline.at - monotonic()
                if sock is None or left <= 0:
                    break
                pause = left if left < LONGEST else LONGEST
                if HOOKS:
                    reached("link: before poll", pause)
                for number, _ in self._poll.poll(pause * 1000):
                    if number == waker.number:
                        waker.drain()
                    else:
                        waker.busy = True
                        self._receive(sock)
                        # Clear `busy` before the loop checks the flag. If the flag is set after the
                        # check, `Signal.set` then wakes up this thread.
                        waker.busy = False
        finally:
            waker.busy = False
            signal.sleepers.remove(waker)

    def _look(self, signal: Signal) -> None:
        """Read available data before a timeout is reported.

        The deadline may have passed while the program did not wait. Data that has arrived meanwhile
        still counts.
        """
        last, end = self._reads + _LAST_READS, monotonic() + _LAST_WAIT
        while not self._try_to_lead(yields=False):
            # Another thread reads. It may not have processed all available data yet.
            if signal.raised or self._reads > last or monotonic() > end or not self._is_behind():
                return
            if HOOKS:
                reached("link: data unprocessed", self)
            time.sleep(GLANCE)
        try:
            for _ in range(_LAST_READS):
                if monotonic() > end:
                    break
                sock = self._socket
                ready = [number for number, _ in self._poll.poll(0)]
                if signal.raised or sock is None or sock.fileno() not in ready:
                    break
                self._waker.busy = True
                self._receive(sock)
        finally:
            self._waker.busy = False
        self._step_back()

    def _is_behind(self) -> bool:
        """Return whether there is data that the reading thread has not processed."""
        sock = self._socket
        # The order of the checks matters, because the reader sets `busy` before it empties the
        # socket. In the other order, both checks could miss data that is being read.
        return sock is not None and (has_bytes(sock) or self._waker.busy)

    def _try_to_lead(self, yields: bool) -> bool:
        with self._mutex:
            if self._reader or self._socket is None:
                return False
            self._reader = get_ident()
            self._reader_yields = yields
            return True

    def _step_back(self) -> None:
        with self._mutex:
            self._reader = 0
            self._reader_yields = False
            heir = self._sleepers[0] if self._sleepers else None
        if heir is not None:
            open_gate(heir)

    def _pass_on(self) -> None:
        """Wake up one sleeping thread to become the leader, unless a thread reads."""
        with self._mutex:
            if self._reader or not self._sleepers:
                return
            gate = self._sleepers[0]
        open_gate(gate)

    def _follow(self, signal: Signal, deadline: Deadline) -> None:
        """Sleep until `signal` is set, the deadline has passed or this thread has to lead."""
        with Gate(signal) as gate:
            try:
                with self._mutex:
                    if not self._reader and self._socket is not None:
                        return
                    self._sleepers.append(gate.lock)
                if self._reader_yields:
                    self._waker.wake()
                gate.pause(deadline.remaining())
                self._wake_up(gate)
            except BaseException:
                # An interrupt. It is unknown whether the gate is in the list, so `_wake_up` checks
                # that.
                self._wake_up(gate)
                raise

    def _wake_up(self, gate: Gate) -> None:
        with self._mutex:
            if gate.lock in self._sleepers:
                self._sleepers.remove(gate.lock)

    # ---- the keeper

    @staticmethod
    def stand_in(of: Callable[[], Reader | None], signal: Signal, deadline: Deadline) -> None:
        """Read in the background until `signal` is set, the deadline has passed or a thread waits.

        Also returns when the socket has ended or the keeper has to send. `of` returns the `Link`,
        or None if the user dropped the connection. While this method sleeps, it keeps no reference
        to the `Link`, so that a dropped `Link` is garbage-collected.
        """
        if HOOKS:
            reached("link: before keeper reads", None)
        link = of()
        if link is None or not link._try_to_lead(yields=True):
            return
        poll, waker = link._poll, link._waker
        signal.sleepers.append(waker)
        try:
            while link is not None and (pause := link._may_sleep(signal, deadline)) > 0:
                link = None
                events = poll.poll(pause * 1000)
                link = of()
                if link is not None:
                    link._serve(events)
        finally:
            signal.sleepers.remove(waker)
            link = of()
            if link is not None:
                link._step_back()

    def _may_sleep(self, signal: Signal, deadline: Deadline) -> float:
        """Return how long the keeper may wait for data (seconds), or 0 if it must stop reading."""
        if signal.raised or self._socket is None or self._sleepers or self._lingering:
            return 0.0
        return min(deadline.remaining(), LONGEST)

    def _serve(self, events: list[tuple[int, int]]) -> None:
        waker, sock = self._waker, self._socket
        for number, _ in events:
            if number == waker.number:
                waker.drain()
            elif sock is not None:
                waker.busy = True
                try:
                    self._receive(sock)
                finally:
                    waker.busy = False

    # ---- the end of the stream

    def _read_to_end(self) -> None:
        """Read up to the end of the socket, or wait until the reading thread has done so.

        The wait takes at most `_NOTICE_WAIT`.
        """
        sock = self._socket
        if sock is None:
            return
        try:
            self._notice_end(sock)
        finally:
            # An interrupt may have occurred just after this thread became the reader.
            if self._reader == get_ident():
                self._step_back()

    def _notice_end(self, sock: Wire) -> None:
        end = monotonic() + _NOTICE_WAIT
        while self._socket is sock and monotonic() < end:
            if self._try_to_lead(yields=False):
                self._read_rest(sock)
                self._step_back()
                return
            time.sleep(GLANCE)

    def _read_rest(self, sock: Wire) -> None:
        """Read the data that arrived before the end of the stream, then handle the end."""
        self._waker.busy = True
        try:
            for _ in range(_LAST_READS):
                if self._socket is not sock or not has_bytes(sock):
                    return
                self._receive(sock)
        finally:
            self._waker.busy = False
