"""Counters: the values of a stream with `allow_msg_counter`."""
