"""Runs over a fleet: many accounts that get the same projects."""
