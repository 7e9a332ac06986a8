"""Describes live objects as declarations, for `import` and `accept`."""
