"""One module for each command, found by its name."""
