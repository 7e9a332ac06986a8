"""Shared by all commands: options, output, formats, exit codes and signals."""
