"""Batch reads of key-value buckets: the keys at planning, and each of them as a row."""
