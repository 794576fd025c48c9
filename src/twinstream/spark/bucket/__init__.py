"""Batch reads of key-value buckets: the keys that a bucket has when Spark plans the query."""
