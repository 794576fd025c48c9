"""Partitioned consumer groups without I/O: names, configurations, partitions and membership.

The stored data has the format of orbit.go's `pcgroups`, so clients in other languages can be
members, too.
"""
