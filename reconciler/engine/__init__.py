"""Carries out what was planned, through ports only: it knows no HTTP, no SQL, no files and no wall clock."""
