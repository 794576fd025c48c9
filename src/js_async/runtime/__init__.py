"""The code that differs between js_async and js_sync: tasks, locks, waiting, socket I/O."""
