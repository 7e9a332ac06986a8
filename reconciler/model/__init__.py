"""Frozen data that every other package uses. No input, no output, no clock, no randomness."""
