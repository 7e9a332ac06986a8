"""Showing an apply: its progress, the question before it, and how it ended."""
