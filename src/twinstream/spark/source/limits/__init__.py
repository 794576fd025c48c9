"""The limits of a micro-batch: how much of the unread messages the next batch reads."""
