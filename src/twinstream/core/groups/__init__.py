"""Partitioned consumer groups: names, configurations, partitions, membership, without I/O.

The stored layout is that of orbit.go's `pcgroups`, so clients in other languages can be
members too.
"""
