"""Consuming: pulls, iterators, handlers, ordered reads, push consumers, acknowledgements."""
