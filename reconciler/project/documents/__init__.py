"""One YAML document: its envelope, resolved values, validation, merging of layers."""
