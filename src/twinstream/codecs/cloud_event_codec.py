"""`CloudEventCodec`: CloudEvents in the binary and the structured form.

Source: the NATS binding and the JSON format of CloudEvents 1.0.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Any, Final, Generic, Literal, TypeVar, cast

from twinstream.codecs.cloud_event import SPEC_VERSION, CloudEvent
from twinstream.codecs.cloud_event_text import from_header, from_time, to_header, to_time
from twinstream.codecs.codec import Codec
from twinstream.codecs.content_type import CONTENT_TYPE, header_of, media_type
from twinstream.codecs.data_codec import data_codec
from twinstream.codecs.json_text import JSON, from_json, to_json
from twinstream.errors import BadArgument, TwinstreamError
from twinstream.errors.payload import PayloadError

__all__ = ["CloudEventCodec"]

D = TypeVar("D")

_EVENTS: Final = "application/cloudevents"
_STRUCTURED: Final = f"{_EVENTS}+json; charset=utf-8"
_BINARY_PREFIX: Final = "ce-"
_TEXTS: Final = ("id", "source", "type", "subject", "dataschema", "datacontenttype")
_REQUIRED: Final = ("id", "source", "type")
_KNOWN: Final = {*_TEXTS, "specversion", "time", "data", "data_base64"}


class CloudEventCodec(Generic[D]):
    """A codec for CloudEvents whose data is of one type. It reads both forms.

    Args:
        data: The type of the data, or its codec; `bytes` for raw data.
        form: The form to publish. "structured": the payload is the event as JSON. "binary": the
            payload is the data alone, and the attributes are headers, `ce-id` and others. A bucket
            stores no headers, so it needs the structured form.
        deduplicate: Publish the `id` as the header `Nats-Msg-Id` too, so that the stream stores
            an event once within its duplicate window.

    Raises:
        BadArgument: The data cannot be encoded.
    """

    def __init__(
        self,
        data: type[D] | Codec[D],
        form: Literal["structured", "binary"] = "structured",
        *,
        deduplicate: bool = False,
    ) -> None:
        if form not in ("structured", "binary"):
            raise BadArgument(f"form must be 'structured' or 'binary', got {form!r}")
        self._data: Final[Codec[D]] = data_codec(data)
        self._is_json: Final = media_type(self._data.content_type) in {JSON, "text/json"}
        self._is_text: Final = self._data.content_type.startswith("text/") and not self._is_json
        self.needs_headers: Final = form == "binary"
        """Whether an event is stored in headers, too."""
        self.content_type: Final = "" if self.needs_headers else _STRUCTURED
        """The media type of the payloads."""
        self._deduplicate: Final = deduplicate

    # ---- the structured form

    def encode(self, value: CloudEvent[D]) -> bytes:
        """Return an event as JSON. Raises `BadArgument` if the form is "binary".

        Args:
            value: The value to encode.
        """
        if self.needs_headers:
            raise BadArgument("the binary form needs headers: use form='structured' here")
        return self._structured(value)

    def _structured(self, value: CloudEvent[D]) -> bytes:
        """Return an event as JSON. Its data is a member: JSON, text, or base64 for other data."""
        plain: dict[str, Any] = {"specversion": SPEC_VERSION, **self._attributes(value)}
        if value.data is not None:
            data = self._data.encode(value.data)
            if self._is_json:
                plain["data"] = from_json(data)
            elif self._is_text:
                plain["data"] = data.decode()
            else:
                plain["data_base64"] = b64encode(data).decode()
        return to_json(plain)

    def decode(self, data: bytes) -> CloudEvent[D]:
        """Return the event of a JSON text. Raises `PayloadError`.

        Args:
            data: The bytes of a payload.
        """
        found = from_json(data)
        if not isinstance(found, dict):
            raise PayloadError("$", f"a CloudEvent is an object, got {type(found).__name__}")
        plain = cast("dict[str, Any]", found)
        texts: dict[str, str] = {}
        for name, value in plain.items():
            if name not in {"data", "data_base64"} and value is not None:
                texts[name] = _as_text(f"$.{name}", value)
        return self._event(texts, self._structured_data(plain), "$.")

    def _structured_data(self, plain: dict[str, Any]) -> D | None:
        """Return the data in the JSON of an event, or None if there is none.

        Raises `PayloadError` if the data does not fit the type.
        """
        encoded, value = plain.get("data_base64"), plain.get("data")
        if encoded is not None:
            if value is not None:
                raise PayloadError("$.data", "the event has both data and data_base64")
            try:
                data = b64decode(encoded, validate=True)
            except (ValueError, TypeError) as error:
                raise PayloadError("$.data_base64", f"not base64: {error}") from error
            return self._decoded("$.data_base64", data)
        if value is None:
            return None
        # Data of another content type is a JSON string that contains the text itself.
        if not self._is_json and isinstance(value, str):
            return self._decoded("$.data", _utf8("$.data", value))
        return self._decoded("$.data", _utf8_json("$.data", value))

    # ---- messages

    def encode_message(self, value: CloudEvent[D]) -> tuple[bytes, Mapping[str, str]]:
        """Return the payload and the headers of an event.

        Args:
            value: The value to encode.
        """
        headers: dict[str, str] = {}
        if self.needs_headers:
            attributes = {"specversion": SPEC_VERSION, **self._attributes(value)}
            headers = {
                f"{_BINARY_PREFIX}{name}": to_header(text) for name, text in attributes.items()
            }
            data = b"" if value.data is None else self._data.encode(value.data)
        else:
            headers[CONTENT_TYPE] = _STRUCTURED
            data = self._structured(value)
        if self._deduplicate:
            headers["Nats-Msg-Id"] = to_header(value.id)
        return data, headers

    def decode_message(
        self, data: bytes, headers: Mapping[str, str], subject: str
    ) -> CloudEvent[D]:
        """Return the event of a message in either form. Raises `PayloadError`.

        Args:
            data: The bytes of a payload.
            headers: Headers of the message.
            subject: Subject of the message.
        """
        name = header_of(headers, CONTENT_TYPE)
        found = "" if name is None else media_type(headers[name])
        if found.startswith(_EVENTS):
            if found not in {_EVENTS, f"{_EVENTS}+json"}:
                raise PayloadError("", f"Content-Type is {found}, expected {_EVENTS}+json")
            return self.decode(data)
        texts: dict[str, str] = {}
        for name in headers:
            attribute = name.lower()
            if attribute.startswith(_BINARY_PREFIX):
                attribute = attribute.removeprefix(_BINARY_PREFIX)
                texts.setdefault(attribute, from_header(name, headers[name]))
        if not texts and not self.needs_headers and not found:
            # A structured event without headers, as clients without headers publish it.
            return self.decode(data)
        is_empty = not data and "datacontenttype" not in texts
        return self._event(texts, None if is_empty else self._decoded("", data), _BINARY_PREFIX)

    # ---- attributes

    def _attributes(self, value: CloudEvent[D]) -> dict[str, str]:
        """Return the attributes of an event as texts, by name, without its data."""
        if not isinstance(value, CloudEvent):
            raise BadArgument(f"a CloudEvent is required, got {type(value).__name__}")
        found: dict[str, str] = {}
        for name in _TEXTS:
            text = getattr(value, name)
            if name == "datacontenttype" and text is None and value.data is not None:
                text = self._data.content_type or None
            if text is not None:
                found[name] = text
        if value.time is not None:
            found["time"] = to_time(value.time)
        return found | dict(value.extensions)

    def _event(self, texts: dict[str, str], data: D | None, prefix: str) -> CloudEvent[D]:
        """Return the event with the attributes `texts` and its data.

        Raises `PayloadError` for an invalid attribute. `prefix` precedes the attribute's name in
        its path.
        """
        version = texts.get("specversion")
        if version != SPEC_VERSION:
            raise PayloadError(f"{prefix}specversion", f"expected {SPEC_VERSION}, got {version!r}")
        missing = [name for name in _REQUIRED if not texts.get(name)]
        if missing:
            raise PayloadError(f"{prefix}{missing[0]}", "a required attribute is missing")
        time = texts.get("time")
        extensions = {name: text for name, text in texts.items() if name not in _KNOWN}
        given: dict[str, Any] = {name: texts.get(name) or None for name in _TEXTS}
        try:
            return CloudEvent(
                data=data,
                time=None if time is None else from_time(f"{prefix}time", time),
                extensions=extensions,
                **given,
            )
        except PayloadError:
            raise
        except TwinstreamError as error:
            raise PayloadError(prefix.removesuffix("."), str(error)) from error

    def _decoded(self, place: str, data: bytes) -> D:
        try:
            return self._data.decode(data)
        except PayloadError as error:
            raise PayloadError(f"{place}{error.path.removeprefix('$')}", error.reason) from error


def _as_text(place: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise PayloadError(place, f"an attribute must be text, got {type(value).__name__}")


def _utf8(place: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise PayloadError(place, f"not Unicode: {error}") from error


def _utf8_json(place: str, value: Any) -> bytes:
    try:
        return to_json(value)
    except ValueError as error:
        raise PayloadError(place, f"not JSON: {error}") from error
