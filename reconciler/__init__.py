"""Keeps a tunnel platform's account equal to what is written in Git.

The version is a literal that the build reads from here, so that `--version` need not search installed metadata.
"""

__version__ = "0.1.0"
