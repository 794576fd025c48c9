"""Batch reads of key-value buckets: one row for each key that exists when the read is planned."""
