"""The streams behind key-value buckets and object stores."""
