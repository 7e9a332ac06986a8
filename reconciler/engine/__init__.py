"""Reads an account and carries out plans, through ports only: no HTTP, no SQL, no files, no wall clock."""
