"""Matches declarations to live objects."""
