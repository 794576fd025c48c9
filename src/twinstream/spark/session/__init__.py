"""Spark sessions, Java, and what executors need."""
