"""Compares declared and live fields in one canonical form."""
