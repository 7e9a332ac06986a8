"""Decides what happens to each resource: nothing, or one action with its reason."""
