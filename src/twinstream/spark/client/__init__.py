"""How driver and executors connect to servers."""
