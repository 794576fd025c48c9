"""Reports: their log records, and the callbacks that receive them."""
