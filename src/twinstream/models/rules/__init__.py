"""The server's validation rules, as tables in the order in which the server checks them."""
