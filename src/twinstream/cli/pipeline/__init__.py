"""``twinstream pipeline``: land streams as tables with Spark, and look after the tables."""
