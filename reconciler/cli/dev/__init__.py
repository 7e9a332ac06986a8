"""Commands for developers: generated files and the man page."""
