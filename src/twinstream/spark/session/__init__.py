"""Set up Spark: sessions, Java, the Python of workers, and a package for executors."""
