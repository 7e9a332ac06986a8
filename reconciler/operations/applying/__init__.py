"""Carrying out a plan, made now or read from a file."""
