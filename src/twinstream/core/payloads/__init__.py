"""The payloads of typed handles, without I/O: encoding, decoding and annotations of handlers."""
