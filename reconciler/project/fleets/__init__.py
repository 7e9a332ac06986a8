"""Reads `fleet.yaml`: the members of a fleet, their projects and keys, and the waves of an apply."""
