"""YAML 1.2: reading with positions and limits, for manifests and for documents embedded in them."""
