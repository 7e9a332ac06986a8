"""Manifests: loading, composition, `for_each`, cross-checks, origin of values, writing."""
