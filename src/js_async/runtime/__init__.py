"""The code that differs between the twins: waiting, tasks or threads, locks, and socket I/O."""
