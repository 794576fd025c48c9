"""Key-value buckets without I/O: names, configurations, entries, codecs and watches."""
