"""Languages inside manifests: YAML scalars, CEL expressions, names of traffic policies."""
