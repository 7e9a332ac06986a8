"""YAML files: reading with positions and limits, patching, formatting."""
