"""The server's rules, as tables in the order in which the server tries them."""
