"""Manifests: loading, composition, `for_each`, declarations, origin of values, writing."""
