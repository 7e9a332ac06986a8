"""Reads an account and applies plans, through ports only: no HTTP, no SQL, no files, no wall clock."""
