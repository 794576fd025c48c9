"""The logic that both twins share: protocol, state machines and errors, without any I/O."""
