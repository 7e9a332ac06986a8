"""The terminal output of an apply: confirmation, progress and summary."""
