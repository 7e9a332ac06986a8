"""What commands share: output, options, formats, progress, exit codes."""
