"""Files and folders that survive crashes, and that other users cannot misuse."""
