"""`twinstream why`: what happened to one message for one consumer."""
