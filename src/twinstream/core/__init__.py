"""The logic that the async and the sync API share: protocol, state machines, errors. No I/O."""
