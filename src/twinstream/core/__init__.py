"""What both twins decide the same way: protocol, accounting and errors, without any I/O."""
