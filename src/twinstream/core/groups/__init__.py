"""Partitioned consumer groups: names, configurations, partitions, membership, without I/O.

The layout is that of orbit.go's `pcgroups`, so that clients in other languages take part.
"""
