"""Applies a plan: a new one, or one from a plan file that is checked against the account first."""
