"""A small JetStream server that stores what it is given, and records all that clients ask for.

It keeps its streams in memory, answers the calls of the JetStream API that read and change them,
and stores what is published to their subjects. It has no clock: a short pull that finds nothing
ends at once.
"""

from __future__ import annotations

import json
import socket
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, Self

from tests.fuzz.stored.samples import STORED
from twinstream.core.wire.subject_match import covers
from twinstream.models import Timestamp
from twinstream.testing.fake_wire import Operation, Splitter, header_block, info_line, message_frame

__all__ = ["Asked", "StoredServer", "Stream"]

_INFO: Final = {
    "server_id": "STORED",
    "server_name": "stored",
    "version": "2.15.1",
    "proto": 1,
    "headers": True,
    "max_payload": 1 << 20,
    "jetstream": True,
    "client_id": 1,
}
_API: Final = "$JS.API."
_TYPE: Final = "io.nats.jetstream.api.v1."
# The third message of each stream is that which the letters are about.
_START: Final = STORED.ns - 3_000_000_000
_LIMITS: Final = {"max_consumers": -1, "max_msgs": -1, "max_bytes": -1, "max_age": 0}


class Stored(NamedTuple):
    """A message of a stream."""

    subject: str
    block: bytes
    data: bytes

    def with_headers(self, headers: dict[str, object]) -> bytes:
        """Return the header block with headers that the server adds, as it adds them."""
        if not self.block:
            return header_block("", headers)
        added = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return self.block[:-2] + added.encode("utf-8", "surrogateescape") + b"\r\n"


class Asked(NamedTuple):
    """What a client published, or the subject that it subscribed to if `data` is None."""

    subject: str
    block: bytes
    data: bytes | None


class Refusal(Exception):
    """An error of the API: its code and description."""


class Consumer:
    """A consumer: the messages that it has still to deliver."""

    def __init__(self, stream: Stream, name: str, config: dict[str, Any]) -> None:
        self.stream: Final = stream
        self.name: Final = name
        self.config: Final = config
        one = config.get("filter_subject")
        self._filters: Final = config.get("filter_subjects") or ([one] if one else [">"])
        self.sent = 0
        self.scanned = 0
        self.left: list[int] = self._chosen()

    def _chosen(self) -> list[int]:
        policy = self.config.get("deliver_policy", "all")
        found = [seq for seq in self.stream.messages if self.matches(seq)]
        if policy == "new":
            return []
        if policy == "by_start_sequence":
            return [seq for seq in found if seq >= self.config.get("opt_start_seq", 1)]
        if policy in ("last", "last_per_subject"):
            last = {self.stream.messages[seq].subject: seq for seq in found}
            return sorted(last.values())[-1 if policy == "last" else 0 :]
        return found

    def matches(self, seq: int) -> bool:
        """Return whether the consumer delivers a message."""
        return any(covers(each, self.stream.messages[seq].subject) for each in self._filters)

    def info(self, kind: str = "consumer_info_response") -> dict[str, Any]:
        """Return the answer to a request for the consumer."""
        position = {"consumer_seq": self.sent, "stream_seq": self.scanned}
        return {
            "type": _TYPE + kind,
            "stream_name": self.stream.name,
            "name": self.name,
            "created": Timestamp.from_ns(_START).rfc3339(),
            "config": self.config,
            "delivered": position,
            "ack_floor": position,
            "num_ack_pending": 0,
            "num_redelivered": 0,
            "num_waiting": 0,
            "num_pending": len(self.left),
        }


class Stream:
    """A stream: its configuration as JSON, and its messages by sequence."""

    def __init__(self, name: str, subjects: list[str], **config: Any) -> None:
        self.name: Final = name
        self.subjects: Final = subjects
        given = {"name": name, "subjects": subjects, "retention": "limits", "storage": "file"}
        self.config: Final[dict[str, Any]] = {
            **given,
            **_LIMITS,
            "num_replicas": 1,
            "discard": "old",
            "allow_direct": True,
            "deny_delete": False,
            **config,
        }
        self.messages: Final[dict[int, Stored]] = {}
        self.consumers: Final[dict[str, Consumer]] = {}
        self.last_seq = 0

    def add(self, subject: str, block: bytes, data: bytes) -> int:
        """Store a message and return its sequence."""
        self.last_seq += 1
        self.messages[self.last_seq] = Stored(subject, block, data)
        most = self.config.get("max_msgs_per_subject") or 0
        for seq in self.on(subject)[:-most] if most > 0 else ():
            del self.messages[seq]
        for consumer in self.consumers.values():
            if consumer.matches(self.last_seq):
                consumer.left.append(self.last_seq)
        return self.last_seq

    def time(self, seq: int) -> Timestamp:
        """Return when a message was stored."""
        return Timestamp.from_ns(_START + seq * 1_000_000_000)

    def on(self, pattern: str) -> list[int]:
        """Return the sequences of the messages whose subjects match."""
        return [seq for seq, each in self.messages.items() if covers(pattern, each.subject)]

    def info(self, kind: str = "stream_info_response", counted: str = "") -> dict[str, Any]:
        """Return the answer to a request for the stream."""
        first = min(self.messages, default=self.last_seq + 1)
        state: dict[str, Any] = {
            "messages": len(self.messages),
            "bytes": sum(len(each.data) for each in self.messages.values()),
            "first_seq": first,
            "first_ts": self.time(first).rfc3339(),
            "last_seq": self.last_seq,
            "last_ts": self.time(self.last_seq).rfc3339(),
            "num_subjects": len({each.subject for each in self.messages.values()}),
            "consumer_count": len(self.consumers),
        }
        if counted:
            subjects = [_shown(self.messages[seq].subject) for seq in self.on(counted)]
            state["subjects"] = {each: subjects.count(each) for each in subjects}
        return {
            "type": _TYPE + kind,
            "config": self.config,
            "created": Timestamp.from_ns(_START).rfc3339(),
            "state": state,
            "ts": self.time(1000).rfc3339(),
        }


class StoredServer:
    """Listens on loopback.

    `streams` is what it stores, and `asked` what clients have asked for since `begin`.
    """

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.asked: list[Asked] = []
        self.unknown: set[str] = set()
        """The requests that this server cannot answer."""
        self._listener: Final = socket.create_server(("127.0.0.1", 0))
        self._threads: Final[list[threading.Thread]] = []
        self._sockets: Final[list[socket.socket]] = []
        self.mutex: Final = threading.RLock()
        self._is_over = False

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"nats://127.0.0.1:{self._listener.getsockname()[1]}"

    def begin(self, streams: list[Stream]) -> None:
        """Replace all streams, and forget what was asked."""
        with self.mutex:
            self.streams = {each.name: each for each in streams}
            self.asked = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self.mutex:
            for sock in self._sockets:
                _end(sock)
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive(), "the server did not end"

    def _start(self, work: Callable[..., object], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._is_over:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self.mutex:
                self._sockets.append(sock)
            if self._is_over:
                _end(sock)
            self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        link = _Link(self, sock)
        try:
            with sock:
                link.converse()
        except OSError:
            return
        finally:
            with self.mutex:
                self._sockets.remove(sock)


class _Link:
    """One connection of a client."""

    def __init__(self, server: StoredServer, sock: socket.socket) -> None:
        self._server: Final = server
        self._sock: Final = sock
        self._listening: Final[dict[str, str]] = {}
        self._out: Final[list[bytes]] = []

    def converse(self) -> None:
        self._sock.sendall(info_line(_INFO))
        splitter = Splitter()
        while data := self._sock.recv(1 << 16):
            with self._server.mutex:
                for operation in splitter.feed(data):
                    self._react(operation)
            if self._out:
                self._sock.sendall(b"".join(self._out))
                self._out.clear()

    def _react(self, operation: Operation) -> None:
        match operation.verb:
            case "PING":
                self._out.append(b"PONG\r\n")
            case "SUB":
                self._listening[operation.sid] = operation.subject
                self._server.asked.append(Asked(operation.subject, b"", None))
            case "UNSUB" if len(operation.words) == 2:
                self._listening.pop(operation.sid, None)
            case "PUB" | "HPUB":
                asked = Asked(operation.subject, operation.headers, operation.payload)
                self._server.asked.append(asked)
                self._answer(operation)

    def _answer(self, operation: Operation) -> None:
        subject, reply = operation.subject, operation.reply
        if subject.startswith("$JS.ACK."):
            self._ack(subject, operation.payload)
            if reply:
                self._say(reply, b"", b"")
        elif not subject.startswith(_API):
            self._publish(operation)
        elif ".DIRECT.GET." in subject:
            self._direct(subject, _loaded(operation.payload), reply)
        elif subject.startswith(f"{_API}CONSUMER.MSG.NEXT."):
            self._next(subject, _loaded(operation.payload), reply)
        elif reply:
            self._call(subject, _loaded(operation.payload), reply)

    def _say(self, to: str, block: bytes, data: bytes, subject: str = "", reply: str = "") -> None:
        for sid, pattern in self._listening.items():
            if covers(pattern, to):
                self._out.append(message_frame(subject or to, sid, reply, block, data))
                return

    def _status(self, to: str, status: str, **headers: object) -> None:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._say(to, header_block(status, named), b"")

    # ---- publishing

    def _publish(self, operation: Operation) -> None:
        subject, reply = operation.subject, operation.reply
        for stream in self._server.streams.values():
            if any(covers(each, subject) for each in stream.subjects):
                try:
                    seq = self._stored(stream, operation)
                except Refusal as refusal:
                    answer: dict[str, Any] = {"error": _error(refusal), "stream": stream.name}
                else:
                    answer = {"stream": stream.name, "seq": seq}
                if reply:
                    self._say(reply, b"", json.dumps(answer).encode())
                return
        if reply:
            self._status(reply, "503")

    def _stored(self, stream: Stream, operation: Operation) -> int:
        subject, headers = operation.subject, _headers(operation.headers)
        expected = headers.get("Nats-Expected-Last-Subject-Sequence")
        if expected is not None:
            about = headers.get("Nats-Expected-Last-Subject-Sequence-Subject", subject)
            if max(stream.on(about), default=0) != int(expected):
                raise Refusal(400, 10071, "wrong last sequence")
        wanted = headers.get("Nats-Expected-Stream", stream.name)
        if wanted != stream.name:
            raise Refusal(400, 10060, "expected stream does not match")
        if stream.config.get("discard_new_per_subject") and stream.on(subject):
            raise Refusal(503, 10077, "maximum messages per subject exceeded")
        if headers.get("Nats-Rollup") == "sub":
            for seq in stream.on(subject):
                del stream.messages[seq]
        if headers.get("Nats-Rollup") == "all":
            stream.messages.clear()
        return stream.add(subject, operation.headers, operation.payload)

    def _ack(self, subject: str, data: bytes) -> None:
        stream = self._server.streams.get(subject.split(".")[2])
        seq = int(subject.split(".")[5])
        ends = not data.startswith((b"-NAK", b"+WPI"))
        if ends and stream is not None and stream.config["retention"] != "limits":
            stream.messages.pop(seq, None)

    # ---- reading

    def _direct(self, subject: str, body: dict[str, Any], reply: str) -> None:
        name, _, tail = subject.removeprefix(f"{_API}DIRECT.GET.").partition(".")
        stream = self._server.streams.get(name)
        if stream is None:
            self._status(reply, "503")
            return
        if tail:
            body = {**body, "last_by_subj": tail}
        if "batch" not in body and "multi_last" not in body:
            found = _found(stream, body)
            if found is None:
                self._status(reply, "404 Message Not Found")
                return
            self._send(reply, stream, found)
            return
        seqs = _batch(stream, body)
        count = min(len(seqs), body.get("batch") or len(seqs))
        last = 0
        for place, seq in enumerate(seqs[:count]):
            left = {"Nats-Num-Pending": len(seqs) - place - 1, "Nats-Last-Sequence": last}
            self._send(reply, stream, seq, left)
            last = seq
        if not seqs:
            self._status(
                reply, "404 No Results" if "multi_last" in body else "404 Message Not Found"
            )
            return
        pending = len(seqs) - count
        end: dict[str, object] = {"Nats_Num_Pending": pending, "Nats_Last_Sequence": last}
        if "multi_last" in body:
            end["Nats_UpTo_Sequence"] = body.get("up_to_seq") or stream.last_seq
        self._status(reply, "204 EOB", **end)

    def _send(
        self, reply: str, stream: Stream, seq: int, more: dict[str, int] | None = None
    ) -> None:
        found = stream.messages[seq]
        added: dict[str, object] = {
            "Nats-Stream": stream.name,
            "Nats-Subject": found.subject,
            "Nats-Sequence": seq,
            "Nats-Time-Stamp": stream.time(seq).rfc3339(),
            **(more or {}),
        }
        self._say(reply, found.with_headers(added), found.data)

    def _next(self, subject: str, body: dict[str, Any], reply: str) -> None:
        name, consumer_name = subject.split(".")[5:7]
        stream = self._server.streams.get(name)
        consumer = stream.consumers.get(consumer_name) if stream else None
        if stream is None or consumer is None:
            self._status(reply, "503")
            return
        batch = body.get("batch") or 1
        while consumer.left and batch:
            seq = consumer.left.pop(0)
            if seq not in stream.messages:
                continue
            batch -= 1
            consumer.sent += 1
            consumer.scanned = seq
            self._deliver(reply, consumer, seq)
        consumer.scanned = max(consumer.scanned, stream.last_seq)
        if batch:
            about = {"Nats_Pending_Messages": batch, "Nats_Pending_Bytes": 0}
            status = "404 No Messages" if body.get("no_wait") else "408 Request Timeout"
            if body.get("idle_heartbeat"):
                places = {"Nats_Last_Consumer": consumer.sent, "Nats_Last_Stream": consumer.scanned}
                self._status(reply, "100 Idle Heartbeat", **places)
            if body.get("no_wait") or body.get("expires", 0) < 1_000_000_000:
                self._status(reply, status, **about)

    def _deliver(self, reply: str, consumer: Consumer, seq: int) -> None:
        stream, pending = consumer.stream, len(consumer.left)
        found = stream.messages[seq]
        time = stream.time(seq).ns
        place = f"{stream.name}.{consumer.name}.1.{seq}.{consumer.sent}.{time}.{pending}"
        block, data = found.block, found.data
        if consumer.config.get("headers_only"):
            block, data = found.with_headers({"Nats-Msg-Size": len(data)}), b""
        self._say(reply, block, data, found.subject, f"$JS.ACK.{place}")

    # ---- the API

    def _call(self, subject: str, body: dict[str, Any], reply: str) -> None:
        words = subject.removeprefix(_API).split(".")
        try:
            answer = self._result(words, body, subject)
        except Refusal as refusal:
            answer = {"type": _TYPE + "response", "error": _error(refusal)}
        self._say(reply, b"", json.dumps(answer).encode("utf-8", "surrogatepass"))

    def _result(self, words: list[str], body: dict[str, Any], subject: str) -> dict[str, Any]:
        streams = self._server.streams
        match words:
            case ["STREAM", "INFO", name]:
                return self._stream(name).info(counted=body.get("subjects_filter", ""))
            case ["STREAM", "NAMES"]:
                names = [each.name for each in _subset(streams, body.get("subject"))]
                return _page("stream_names_response", "streams", names, body)
            case ["STREAM", "LIST"]:
                infos = [each.info() for each in _subset(streams, body.get("subject"))]
                return _page("stream_list_response", "streams", infos, body)
            case ["STREAM", "MSG", "GET", name]:
                return self._message(self._stream(name), body)
            case ["STREAM", "MSG", "DELETE", name]:
                if self._stream(name).messages.pop(body["seq"], None) is None:
                    raise Refusal(404, 10037, "no message found")
                return {"type": _TYPE + "stream_msg_delete_response", "success": True}
            case ["STREAM", "PURGE", name]:
                return {
                    "type": _TYPE + "stream_purge_response",
                    "success": True,
                    "purged": _purged(self._stream(name), body),
                }
            case ["STREAM", "DELETE", name]:
                self._stream(name)
                del streams[name]
                return {"type": _TYPE + "stream_delete_response", "success": True}
            case ["STREAM", "CREATE" | "UPDATE" as verb, name]:
                return self._made(verb, name, body)
            case ["CONSUMER", *_]:
                return self._of_consumer(words, body)
        self._server.unknown.add(subject)
        raise Refusal(400, 10003, f"bad request {subject}")

    def _made(self, verb: str, name: str, body: dict[str, Any]) -> dict[str, Any]:
        streams = self._server.streams
        if name in streams and verb == "CREATE":
            raise Refusal(400, 10058, "stream name already in use")
        if name not in streams:
            config = {key: value for key, value in body.items() if key not in ("name", "subjects")}
            streams[name] = Stream(name, body.get("subjects") or [], **config)
        return streams[name].info(f"stream_{verb.lower()}_response")

    def _of_consumer(self, words: list[str], body: dict[str, Any]) -> dict[str, Any]:
        match words[1:]:
            case ["CREATE", name, consumer, *_] | ["DURABLE", "CREATE", name, consumer]:
                stream = self._stream(name)
                if consumer not in stream.consumers or body.get("action") == "":
                    made = Consumer(stream, consumer, {"name": consumer, **body["config"]})
                    stream.consumers.setdefault(consumer, made)
                return stream.consumers[consumer].info("consumer_create_response")
            case ["INFO", name, consumer]:
                return self._consumer(name, consumer).info()
            case ["DELETE", name, consumer]:
                self._consumer(name, consumer)
                del self._stream(name).consumers[consumer]
                return {"type": _TYPE + "consumer_delete_response", "success": True}
            case ["RESET", name, consumer]:
                return self._consumer(name, consumer).info("consumer_reset_response")
            case ["NAMES", name]:
                names = list(self._stream(name).consumers)
                return _page("consumer_names_response", "consumers", names, body)
            case ["LIST", name]:
                infos = [each.info() for each in self._stream(name).consumers.values()]
                return _page("consumer_list_response", "consumers", infos, body)
        self._server.unknown.add(".".join(words))
        raise Refusal(400, 10003, "bad request")

    def _stream(self, name: str) -> Stream:
        found = self._server.streams.get(name)
        if found is None:
            raise Refusal(404, 10059, "stream not found")
        return found

    def _consumer(self, stream: str, name: str) -> Consumer:
        found = self._stream(stream).consumers.get(name)
        if found is None:
            raise Refusal(404, 10014, "consumer not found")
        return found

    def _message(self, stream: Stream, body: dict[str, Any]) -> dict[str, Any]:
        seq = _found(stream, body)
        if seq is None:
            raise Refusal(404, 10037, "no message found")
        found = stream.messages[seq]
        message: dict[str, Any] = {
            "subject": _shown(found.subject),
            "seq": seq,
            "data": b64encode(found.data).decode(),
            "time": stream.time(seq).rfc3339(),
        }
        if found.block and not body.get("no_hdr"):
            message["hdrs"] = b64encode(found.block).decode()
        return {"type": _TYPE + "stream_msg_get_response", "message": message}


def _found(stream: Stream, body: dict[str, Any]) -> int | None:
    """Return the sequence of the message that a get asks for."""
    if "last_by_subj" in body:
        return max(stream.on(body["last_by_subj"]), default=None)
    if "next_by_subj" in body:
        start = body.get("seq", 1)
        return min((seq for seq in stream.on(body["next_by_subj"]) if seq >= start), default=None)
    return body["seq"] if body.get("seq") in stream.messages else None


def _batch(stream: Stream, body: dict[str, Any]) -> list[int]:
    if "multi_last" in body:
        until = body.get("up_to_seq") or stream.last_seq
        last: dict[str, int] = {}
        for pattern in body["multi_last"]:
            last |= {
                stream.messages[seq].subject: seq for seq in stream.on(pattern) if seq <= until
            }
        return sorted(last.values())
    start = body.get("seq", 1)
    return [seq for seq in stream.on(body.get("next_by_subj") or ">") if seq >= start]


def _purged(stream: Stream, body: dict[str, Any]) -> int:
    seqs = stream.on(body.get("filter") or ">")
    if body.get("seq"):
        seqs = [seq for seq in seqs if seq < body["seq"]]
    if body.get("keep"):
        seqs = seqs[: -body["keep"]]
    for seq in seqs:
        del stream.messages[seq]
    return len(seqs)


def _subset(streams: dict[str, Stream], subject: str | None) -> Iterator[Stream]:
    for each in streams.values():
        if subject is None or any(
            covers(subject, own) or covers(own, subject) for own in each.subjects
        ):
            yield each


def _page(kind: str, member: str, items: list[Any], body: dict[str, Any]) -> dict[str, Any]:
    start = body.get("offset", 0)
    return {
        "type": _TYPE + kind,
        "total": len(items),
        "offset": start,
        "limit": 1024,
        member: items[start:],
    }


def _error(refusal: Refusal) -> dict[str, Any]:
    code, err_code, description = refusal.args
    return {"code": code, "err_code": err_code, "description": description}


def _headers(block: bytes) -> dict[str, str]:
    lines = block.decode("utf-8", "surrogateescape").split("\r\n")[1:]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def _loaded(payload: bytes) -> dict[str, Any]:
    return dict(json.loads(payload)) if payload else {}


def _shown(subject: str) -> str:
    # The server writes what is not UTF-8 as the replacement character.
    return subject.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _end(sock: socket.socket) -> None:
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
