"""Writing YAML files: rendering, patching, formatting."""
