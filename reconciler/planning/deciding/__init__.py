"""Decides what happens to one resource."""
