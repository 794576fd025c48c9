"""Cut the bytes of a whole page into columns with Arrow's functions, without a loop.

Measured for 20,000 messages of 200 bytes on a busy machine: turning the bytes of a pull into Arrow
columns takes 1.3 µs of CPU a message instead of the 8.3 of the parser. For a direct get, it takes
1.6 µs instead of 4.4.

The functions return an exact result or None. The control line of each message contains a mark with
a name that was chosen at random, and the functions split the bytes at this mark. The sizes in a
control line define where its message ends, and the next message must begin exactly there. If there
are other bytes in between (a PING, a message of another subscription), the functions return None,
and the caller parses the page frame by frame.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from twinstream.core.read.arrow_columns import (
    NotUniform,
    ascending,
    behind,
    between,
    blank,
    fields,
    halves,
    lengths,
    number,
    parts_of,
    plus,
    require,
)
from twinstream.core.read.arrow_page import ArrowPage

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cut_direct", "cut_pull"]

# Number of bytes after the mark that certainly include the end of the control line.
_CONTROL: Final = 160

_BARE: Final = b"NATS/1.0\r\nNats-Stream: "
_LINES: Final = (0, 1, 2, 3, 4)
_TAIL: Final = b"Nats-Stream: "


def cut_direct(data: bytes, end: int, mark: bytes, stream: bytes) -> ArrowPage | None:
    """Return the messages of a direct get batch, or None if they have to be parsed one by one.

    `data` holds whole messages up to `end`. Each begins with `mark`: `HMSG`, the subject of the
    response, and the sid. The result is also None if a mirror replied instead of `stream`.
    """
    import pyarrow as pa

    try:
        return _cut_direct(data, end, mark, stream)
    except (NotUniform, pa.ArrowInvalid):
        return None


def cut_pull(data: bytes, end: int, mark: bytes, sid: bytes) -> ArrowPage | None:
    """Return the messages of a pull, or None if they have to be parsed one by one.

    `data` holds whole messages up to `end`. The reply subject of each message contains `mark`,
    which is the consumer's name between dots.
    """
    import pyarrow as pa

    try:
        return _cut_pull(data, end, mark, sid)
    except (NotUniform, pa.ArrowInvalid):
        return None


def _cut_direct(data: bytes, end: int, mark: bytes, stream: bytes) -> ArrowPage:
    """Return the messages, or raise `NotUniform` or `ArrowInvalid` to have them parsed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # HMSG reply sid 173 373\r\nNATS/1.0\r\n[stored headers\r\n]Nats-Stream: …\r\n\r\npayload\r\n
    parts, starts, ends = parts_of(data, len(mark), end - 2, b"\r\n" + mark)
    sizes, _ = halves(pc.binary_slice(parts, 0, _CONTROL), b"\r\n")
    header_size, total = (number(each) for each in fields(sizes, b" ", 2, 2))
    header = plus(pc.add(starts, lengths(sizes)), 2)
    # If a payload contains `mark`, a part ends within the message, and the sizes differ.
    require(pc.equal(pc.add(header, total), ends))
    headers, payloads = between(data, header, pc.add(header, header_size), ends)
    stored, tail = _stored(headers)
    name, subject, seq, time, pending = tail
    # If the stream name differs, either a mirror replied, or `tail` has stored headers that look
    # like the server's lines.
    require(pc.equal(name, pa.scalar(stream, pa.binary())))
    timestamps = behind(time, b"Nats-Time-Stamp: ").cast(pa.string())
    return ArrowPage(
        ascending(number(behind(seq, b"Nats-Sequence: "))),
        behind(subject, b"Nats-Subject: "),
        timestamps.cast(pa.timestamp("ns", "UTC")),
        stored,
        payloads,
        number(behind(pending, b"Nats-Num-Pending: ")[-1:])[0].as_py(),
    )


def _stored(headers: pa.Array) -> tuple[pa.Array, list[pa.Array]]:
    """Return the stored header blocks, and the columns of five lines that the server appended."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        tail = behind(headers, _BARE)
        # The server appends stream, subject, sequence, time, pending, and usually the last
        # sequence, followed by two line ends. If there are more lines, the first ones are stored
        # headers that look like the server's lines. A copy of a received message may have such
        # headers.
        return blank(len(headers)), fields(tail, b"\r\n", 7, 8, _LINES)
    except NotUniform:
        block, tail = halves(headers, _TAIL, last=True)
        kind = pa.binary()
        # If the stored headers of a message do not end with a line end, the server's lines begin
        # within a line, and the page has to be parsed.
        require(pc.ends_with(block, b"\r\n"))
        bare = pc.equal(block, pa.scalar(b"NATS/1.0\r\n", kind))
        return pc.if_else(bare, pa.scalar(b"", kind), block), fields(tail, b"\r\n", 7, 8, _LINES)


def _cut_pull(data: bytes, end: int, mark: bytes, sid: bytes) -> ArrowPage:
    """Return the messages, or raise `NotUniform` or `ArrowInvalid` to have them parsed."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # MSG subject sid $JS.ACK.stream[mark]1.64.64.1795320858363208371.39936 200\r\npayload\r\n
    # The mark is within the control line, so each part ends with the beginning of the next
    # control line.
    begin = data[: max(0, data.find(mark))]
    operation, first_subject, after_subject = _beginning(begin, sid)
    parts, starts, ends = parts_of(data, len(begin) + len(mark), end, mark)
    control, _ = halves(pc.binary_slice(parts, 0, _CONTROL), b"\r\n")
    ack_subject, *texts = fields(control, b" ", 2, 3)
    sizes = [number(each) for each in texts]
    # Only the control line of a message with headers has a second size.
    if (operation == b"HMSG ") != (len(sizes) == 2):
        raise NotUniform
    seq, time, pending = fields(ack_subject, b".", 5, 20, pick=(1, 3, 4))
    body = plus(pc.add(starts, lengths(control)), 2)
    *headers, payloads, rest = between(data, body, *(pc.add(body, each) for each in sizes), ends)
    if rest[-1].as_py() != b"\r\n":
        raise NotUniform
    following = behind(rest[:-1], b"\r\n" + operation)
    require(pc.ends_with(following, after_subject))
    subjects = pc.binary_slice(following, 0, -len(after_subject))
    # With a space, the line has more fields than that of the first message.
    require(pc.invert(pc.match_substring(subjects, b" ")))
    if headers:
        require(pc.ends_with(headers[0], b"\r\n"))
    return ArrowPage(
        ascending(number(seq)),
        pa.concat_arrays([pa.array([first_subject], pa.binary()), subjects]),
        number(time).cast(pa.timestamp("ns", "UTC")),
        pc.binary_slice(headers[0], 0, -2) if headers else blank(len(seq)),
        payloads,
        number(pending[-1:])[0].as_py(),
    )


def _beginning(line: bytes, sid: bytes) -> tuple[bytes, bytes, bytes]:
    """Split the beginning of a control line into operation, subject, and the text after both."""
    words = line.split(b" ")
    if len(words) != 4 or words[0] not in {b"MSG", b"HMSG"} or words[2] != sid:
        raise NotUniform
    return words[0] + b" ", words[1], b" %b %b" % (sid, words[3])
