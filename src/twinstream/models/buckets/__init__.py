"""Key-value buckets and object stores as the streams behind them."""
