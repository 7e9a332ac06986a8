"""Describes live objects as declarations, for `import` and `drift --accept`."""
