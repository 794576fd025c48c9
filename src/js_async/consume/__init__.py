"""Consuming messages: pulls, iterators, handlers, ordered reads, push consumers, acks."""
