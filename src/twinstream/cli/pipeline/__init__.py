"""`twinstream pipeline`: land streams as tables with Spark, and maintain the tables."""
