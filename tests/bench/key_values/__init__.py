"""`python -m tests.bench.key_values`: key-value buckets beside other clients."""
